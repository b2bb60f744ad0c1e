"""Studies with people: who gets which item, sheets and Label Studio, and how far they agree."""

from pluralbench_studies.agreement import agreement, consensus, majority, met, own_answers, settled
from pluralbench_studies.answers import CONSENSUS, Submission, check_received
from pluralbench_studies.assignment import ASSIGNED, annotator_names, assign, draw
from pluralbench_studies.covering import covering_design
from pluralbench_studies.errors import AnswersError, AssignmentError, StudyError
from pluralbench_studies.forms import Form, Question, by_annotator, preference, score
from pluralbench_studies.label_studio import (
    label_studio_config,
    label_studio_tasks,
    read_export,
    write_label_studio,
)
from pluralbench_studies.reading import ANSWERS, Answers, by_item, problem_frame, read_answers, read_submissions
from pluralbench_studies.sheets import (
    guarded,
    is_filled,
    new_files,
    read_rows,
    read_sheet,
    unguarded,
    write_sheet,
    write_sheets,
)
from pluralbench_studies.study import (
    Share,
    Study,
    StudyRecipe,
    how_far,
    read_returned,
    read_study,
    refuse_filled,
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
    "Question",
    "Share",
    "Study",
    "StudyError",
    "StudyRecipe",
    "Submission",
    "agreement",
    "annotator_names",
    "assign",
    "by_annotator",
    "by_item",
    "check_received",
    "consensus",
    "covering_design",
    "draw",
    "guarded",
    "how_far",
    "is_filled",
    "label_studio_config",
    "label_studio_tasks",
    "majority",
    "met",
    "new_files",
    "own_answers",
    "preference",
    "problem_frame",
    "read_answers",
    "read_export",
    "read_returned",
    "read_rows",
    "read_sheet",
    "read_study",
    "read_submissions",
    "refuse_filled",
    "score",
    "settled",
    "unguarded",
    "write_label_studio",
    "write_sheet",
    "write_sheets",
    "write_study",
    "written_lines",
]
