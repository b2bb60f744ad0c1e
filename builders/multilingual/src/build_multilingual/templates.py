"""Prompt templates that ask for a translation.

There are 31, as in MAPLE, in our own wording. Each has the fields `source_language`, `target_language` and `source`
once.
"""

TEMPLATES: tuple[str, ...] = (
    "How would you say this {source_language} sentence in {target_language}? {source}",
    "Please put the following {source_language} sentence into {target_language}.\n\n{source}",
    'I need this in {target_language}, please: "{source}" The original is {source_language}.',
    "Turn this {source_language} text into natural {target_language}:\n{source}",
    "Could you help me with a translation? It goes from {source_language} to {target_language}.\n\n{source}",
    "{source}\n\nThat was {source_language}. What is it in {target_language}?",
    'My friend reads only {target_language}. What should I tell her if the {source_language} text says "{source}"?',
    "{source_language} text: {source}\nPlease write the {target_language} version.",
    "Render the {source_language} line below in good {target_language}.\n\n> {source}",
    'Somebody sent me a message in {source_language}: "{source}" Would you kindly translate it into {target_language}?',
    "Write the same thing in {target_language}. The sentence is in {source_language}.\n\n{source}",
    "Original language: {source_language}\nWanted language: {target_language}\nSentence: {source}",
    'What does "{source}" mean? I speak {target_language} and know hardly any {source_language}.',
    "You are a careful {source_language} translator. Give me this sentence in {target_language}.\n{source}",
    "Translate into {target_language} and change nothing in the meaning of the {source_language} sentence:\n\n{source}",
    "I am learning {source_language}. Show me what this sentence is in {target_language}: {source}",
    "Give only the {target_language} translation, without comments.\n\n{source_language} sentence: {source}",
    'From {source_language}, please, and into {target_language}: "{source}"',
    "Here is a sentence from a {source_language} text.\n\n{source}\n\nHow does it read in {target_language}?",
    "Would you be so kind as to translate this from {source_language} for a {target_language} reader?\n\n{source}",
    "Quick {target_language} translation of this {source_language} sentence, thanks! {source}",
    'Task: translation\nSource ({source_language}): "{source}"\nResult in {target_language}:',
    "Take the {source_language} words after the dash and express them in fluent {target_language} - {source}",
    "We publish our page in {target_language} too. Please translate this {source_language} sentence for it:\n{source}",
    'The {source_language} sentence "{source}" has to appear in a {target_language} letter. What do I write?',
    "{source}\n\nPlease translate the sentence above, which is {source_language}, into {target_language}.",
    "Explain nothing, just tell me the {target_language} for the {source_language} sentence that follows.\n\n{source}",
    "For a visitor who understands {target_language} better than {source_language}, please translate: {source}",
    'Can you read {source_language}? Then tell me in {target_language} what this says:\n\n"{source}"',
    "As a native speaker of {target_language}, how would you word this {source_language} sentence?\n{source}",
    "Let us move one sentence from {source_language} to {target_language}. The sentence is: {source}",
)
