"""Studies with people: who gets which item, sheets and Label Studio, and how far they agree."""

from pluralbench_studies.agreement import (
    agreement,
    answer_pairs,
    consensus,
    consensus_counts,
    majority,
    own_answers,
    share_over,
)
from pluralbench_studies.answers import CONSENSUS, Submission, check_received
from pluralbench_studies.assignment import ASSIGNED, annotator_names, assign, draw
from pluralbench_studies.errors import AnswersError, AssignmentError, StudyError
from pluralbench_studies.forms import Form, Question, preference, score
from pluralbench_studies.label_studio import label_studio_config, label_studio_tasks, read_export, write_label_studio
from pluralbench_studies.reading import ANSWERS, Answers, by_item, problem_frame, read_answers, read_submissions
from pluralbench_studies.sheets import escape_formula, is_filled, read_rows, write_sheet, write_sheets
from pluralbench_studies.study import (
    ProportionRecord,
    Study,
    StudyRecipe,
    annotator_progress,
    read_returned,
    read_study,
    write_study,
    written_lines,
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
    "annotator_names",
    "annotator_progress",
    "answer_pairs",
    "assign",
    "by_item",
    "check_received",
    "consensus",
    "consensus_counts",
    "draw",
    "escape_formula",
    "is_filled",
    "label_studio_config",
    "label_studio_tasks",
    "majority",
    "own_answers",
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
    "write_label_studio",
    "write_sheet",
    "write_sheets",
    "write_study",
    "written_lines",
]
