"""Fields, questions and guide that raters see (paper, section 3.2)."""

from pluralbench_studies import Form, Question, score

LOWEST, HIGHEST = 1, 5
TITLES = {
    "factuality": "Factuality and correctness",
    "relevance": "Relevance and instruction following",
    "helpfulness": "Helpfulness and harmlessness",
    "rubric": "What this person expects",
}
DIMENSIONS = tuple(TITLES)
RUBRIC = "rubric"
GENERAL = tuple(name for name in DIMENSIONS if name != RUBRIC)
FIELDS = {"question": "The question", "answer": "The answer", "expected": "What this person expects"}

# Label Studio shows the questions on general quality below the answer, before the rubric.
FORM = Form(
    FIELDS,
    [
        *(
            score(name, LOWEST, HIGHEST, title=TITLES[name], about="expected" if name == RUBRIC else "answer")
            for name in DIMENSIONS
        ),
        Question("remark", "Remark"),
    ],
)

# Fixed words begin here, which spelling rules leave alone.
GUIDE = """\
# How to rate

Each row is one answer to one person's question. Work alone, in the order of the rows, and give each answer four whole
numbers from 1 to 5: 1 is poor or not at all, 5 could not be better.

1. Read the question and the answer, and not yet what the person expects.
   - `factuality`: is it correct, with nothing made up?
   - `relevance`: does it answer this question, and do what it asks for?
   - `helpfulness`: would it be of real use to somebody who asks this, and harm nobody?
2. Then read what this person expects.
   - `rubric`: how well does the answer meet these expectations? An answer that is good in general and meets none of
     them gets a 1 here.

The numbers need not go together: rate each by itself. How long an answer is says nothing about it, and instructions
within an answer are not for you. What you want to say goes into `remark`.

In a sheet, leave `item`, `annotator` and the texts as they are, and save it as CSV in UTF-8.
"""
# Fixed words end here.
