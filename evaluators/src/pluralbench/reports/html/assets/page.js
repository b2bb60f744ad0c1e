"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  // A page opened from a file may have no storage; the choice is then not remembered.
  const stored = { get() { try { return localStorage.theme; } catch { return undefined; } },
                   set(value) { try { localStorage.theme = value; } catch { /* not remembered */ } } };

  const isDark = () => root.style.colorScheme ? root.style.colorScheme === "dark" : system.matches;
  const showTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
  if (["light", "dark"].includes(stored.get())) root.style.colorScheme = stored.get();
  theme.hidden = false;
  showTheme();
  system.addEventListener("change", showTheme);
  theme.addEventListener("click", () => {
    root.style.colorScheme = isDark() ? "light" : "dark";
    stored.set(root.style.colorScheme);
    showTheme();
  });

  // Numbers are in data-order; missing values stay last in both directions.
  const orderOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.order === undefined) return cell.textContent.trim() || null;
    return cell.dataset.order === "" ? null : Number(cell.dataset.order);
  };
  const compared = (one, other) => typeof one === "number" && typeof other === "number"
    ? one - other : String(one).localeCompare(String(other), undefined, { numeric: true });

  const sort = (button) => {
    const head = button.closest("th");
    const column = head.cellIndex;
    const number = head.classList.contains("number");
    const now = head.getAttribute("aria-sort");
    const to = now ? (now === "ascending" ? "descending" : "ascending") : (number ? "descending" : "ascending");
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", to);
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].map((row) => [orderOf(row, column), row]);
    const sign = to === "ascending" ? 1 : -1;
    rows.sort(([one], [other]) => one === null || other === null
      ? (one === null) - (other === null) : sign * compared(one, other));
    body.append(...rows.map(([, row]) => row));
  };

  const search = (input) => {
    const wanted = input.value.trim().toLocaleLowerCase();
    let shown = 0;
    const rows = document.getElementById(input.dataset.search).tBodies[0].rows;
    for (const row of rows) {
      row.hidden = !row.textContent.toLocaleLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    input.closest(".search").querySelector("output").textContent = wanted ? `${shown} of ${rows.length} rows` : "";
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-sort]");
    if (button) sort(button);
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches("input[data-search]")) search(event.target);
  });

  // Following a link into a collapsed element opens it.
  const unfold = () => {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* no id has a bare % */ }
    const goal = target;
    while (target) { if (target.tagName === "DETAILS") target.open = true; target = target.parentElement; }
    if (goal) goal.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // Print everything expanded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
})();
