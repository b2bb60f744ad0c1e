"use strict";
(() => {
  const form = document.querySelector("[data-filters]");
  if (!form) return;
  const rows = [...document.querySelectorAll("tr[data-facets]")].map((row) => [row, JSON.parse(row.dataset.facets)]);
  const output = form.querySelector("output");

  const apply = () => {
    const wanted = [...form.elements].filter((one) => one.tagName === "SELECT" && one.value);
    let shown = 0;
    for (const [row, facets] of rows) {
      const fits = wanted.every((one) => (facets[one.name] ?? []).includes(one.value));
      row.classList.toggle("filtered", !fits);
      shown += fits;
    }
    output.textContent = wanted.length ? `${shown} of ${rows.length} rows` : "";
  };
  form.addEventListener("change", apply);
  // The fields are reset only after the event.
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  // A browser that navigates back restores the choices.
  addEventListener("pageshow", apply);
})();
