// What scrolls can be reached with the keyboard, and the buttons of a code block are no landmark of the page. The theme
// adds both after the page is there, and a code block's buttons only when it comes into view.
const mend = () => {
  const scrolled = ".md-typeset__scrollwrap:not([tabindex]), :is(div.arithmatex, .output):not([tabindex])";
  for (const place of document.querySelectorAll(scrolled)) place.tabIndex = 0;
  for (const buttons of document.querySelectorAll(".md-code__nav:not([role])")) buttons.setAttribute("role", "none");
};
new MutationObserver(mend).observe(document.documentElement, { childList: true, subtree: true });
