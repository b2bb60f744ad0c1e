from .agreement_statistics import (
    agreement,
    annotator_shares,
    answer_pairs,
    consensus,
    consensus_counts,
    first_answers,
    majority,
    share_over,
)
from .assignment import ASSIGNED, assign, check_annotators, draw, draw_rows
from .errors import StudyError
from .forms import Form, Question, preference, score
from .label_studio import label_studio_config, write_label_studio
from .reading import ANSWERS, CONSENSUS, PROBLEMS, Answers, check_cells, read_answers
from .sheets import check_unfilled, read_rows, write_sheet, write_sheets
from .study import (
    Study,
    annotator_progress,
    item_ids,
    progress_rows,
    read_study,
    write_study,
)

__all__ = [
    "ANSWERS",
    "ASSIGNED",
    "CONSENSUS",
    "PROBLEMS",
    "Answers",
    "Form",
    "Question",
    "Study",
    "StudyError",
    "agreement",
    "annotator_progress",
    "annotator_shares",
    "answer_pairs",
    "assign",
    "check_annotators",
    "check_cells",
    "check_unfilled",
    "consensus",
    "consensus_counts",
    "draw",
    "draw_rows",
    "first_answers",
    "item_ids",
    "label_studio_config",
    "majority",
    "preference",
    "progress_rows",
    "read_answers",
    "read_rows",
    "read_study",
    "score",
    "share_over",
    "write_label_studio",
    "write_sheet",
    "write_sheets",
    "write_study",
]
