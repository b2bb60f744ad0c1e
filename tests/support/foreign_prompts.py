"""Files of the form in which other projects publish the prompts of their judges, with texts of our own."""

from pathlib import Path

PAIR = "Which is better?\n{question}\nFirst: {first}\nSecond: {second}"
RUBRIC = "[Is it quiet?]\nScore 1: loud {not a name}"
FOREIGN = (
    "con-j",
    "offsetbias",
    "prometheus-absolute",
    "prometheus-relative",
    "rise-judge",
    "rm-r1",
    "rm-r1-distill",
    "selene",
    "skywork-critic",
    "think-rm",
    "think-rm-multiclass",
)
"""Shipped prompts whose text is not ours."""


def template(question: str, *responses: str, more: str = "") -> str:
    """The text of a prompt with these variables, as in a format string."""
    return (
        f'Braces {{{{"x": 1}}}} and a question:\n{{{question}}}\n'
        + "\n".join(f"{{{name}}}" for name in responses)
        + more
    )


def write_sources(folder: Path) -> Path:
    """Write files at the places where the projects have theirs; one folder serves for all of them."""
    pair = repr(template("instruction", "output_1", "output_2"))
    bench = "\n\n".join(
        [
            "raise SystemExit('never run')",
            f"CON_J_PROMPT = {pair}",
            f"OFFSETBIAS_PROMPT = {pair}",
            f"RISE_Judge_PROMPT = {pair}",
            f"Atla_PROMPT = {template('user_input', 'assistant_response_a', 'assistant_response_b')!r}",
        ]
    )
    single = template("question", "answer_a", "answer_b")
    reasoning = "\n\n".join(
        [
            "RM_R1_INSTRUCT_SYSTEM_PROMPT = (\n    'Judge in tags: <type>{x}</type>\\n'\n    'then an answer'\n)",
            f"RM_R1_SINGLE_TURN_INSTRUCT_USER_PROMPT = {single!r}",
            f"RM_R1_SINGLE_TURN_REASONING_USER_PROMPT = {single!r} + '\\n' + 'at last'",
        ]
    )
    kind = (
        "class {name}(Base):\n    def __init__(self):\n        system_msg = ('Judge. ' 'Think.')\n"
        "        user_msg = ({user!r})\n        super().__init__(system_msg, user_msg)"
    )
    user = template("context", "response1", "response2")
    names = ("NaiveReasoningBinaryPromptTemplate", "NaiveReasoningMulticlassPromptTemplate")
    prometheus = "\n".join(
        [
            "ABS_SYSTEM_PROMPT = 'Score it.'",
            "REL_SYSTEM_PROMPT = 'Compare them.'",
            f"ABSOLUTE_PROMPT_WO_REF = {template('instruction', 'response', 'rubric')!r}",
            f"RELATIVE_PROMPT_WO_REF = {template('instruction', 'response_A', 'response_B', 'rubric')!r}",
            f"HELPFULNESS_RUBRIC = '''\n{RUBRIC}\n'''.strip()",
        ]
    )
    files = {
        "rewardbench/generative.py": bench,
        "eval/RM-Bench/rewardbench/generative.py": reasoning,
        "VERL/examples/data_preprocess/prompt_templates.py": "\n\n".join(
            kind.format(name=name, user=user) for name in names
        ),
        "libs/prometheus-eval/prometheus_eval/prompts.py": prometheus,
        "utils/templates/skywork_critic_prompt.jinja2": "A {x}:\n{{input}}\n{{ response_a }}\n{{response_b}}\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
