"""Annotation studies: assignment of items, sheets and Label Studio tasks, answers, and agreement."""

from pluralbench_studies.agreement import (
    agreement,
    answer_pairs,
    consensus,
    consensus_counts,
    first_answers,
    majority,
    share_over,
)
from pluralbench_studies.answers import CONSENSUS, Submission, check_cells, check_received
from pluralbench_studies.assignment import ASSIGNED, assign, check_annotators, draw
from pluralbench_studies.errors import AnswersError, AssignmentError, StudyError
from pluralbench_studies.forms import Form, Question, preference, score
from pluralbench_studies.label_studio import label_studio_config, label_studio_tasks, read_export, write_label_studio
from pluralbench_studies.reading import ANSWERS, Answers, problem_frame, read_answers, read_submissions, sort_by_item
from pluralbench_studies.sheets import is_filled, read_rows, write_sheet, write_sheets
from pluralbench_studies.study import (
    ProportionRecord,
    Study,
    StudyRecipe,
    annotator_progress,
    read_returned,
    read_study,
    study_summary,
    write_study,
)

__all__ = [
    "ANSWERS",
    "ASSIGNED",
    "CONSENSUS",
    "Answers",
    "AnswersError",
    "AssignmentError",
    "Form",
    "ProportionRecord",
    "Question",
    "Study",
    "StudyError",
    "StudyRecipe",
    "Submission",
    "agreement",
    "annotator_progress",
    "answer_pairs",
    "assign",
    "check_annotators",
    "check_cells",
    "check_received",
    "consensus",
    "consensus_counts",
    "draw",
    "first_answers",
    "is_filled",
    "label_studio_config",
    "label_studio_tasks",
    "majority",
    "preference",
    "problem_frame",
    "read_answers",
    "read_export",
    "read_returned",
    "read_rows",
    "read_study",
    "read_submissions",
    "score",
    "share_over",
    "sort_by_item",
    "study_summary",
    "write_label_studio",
    "write_sheet",
    "write_sheets",
    "write_study",
]
