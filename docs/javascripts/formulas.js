// Formulas that the Markdown extension has marked, by KaTeX. Without it they stay readable as LaTeX.
document$.subscribe(() => {
  if (typeof katex === "undefined") return;
  for (const place of document.querySelectorAll(".arithmatex")) {
    const text = place.textContent.replace(/^\\[([]|\\[)\]]$/g, "");
    katex.render(text, place, { displayMode: place.tagName === "DIV", throwOnError: false });
  }
});
