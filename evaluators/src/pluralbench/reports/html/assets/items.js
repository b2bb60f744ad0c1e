"use strict";
(() => {
  const AT_ONCE = 50;

  // A block is gzip in base64. Texts are inserted as text, never as markup.
  const unfold = async (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  };
  const blocks = new Map();
  const block = (id) => {
    if (!blocks.has(id)) blocks.set(id, unfold(id));
    return blocks.get(id);
  };

  const make = (tag, options = {}, ...children) => {
    const { cls, ...rest } = options;
    const element = document.createElement(tag);
    if (cls) element.className = cls;
    for (const [name, value] of Object.entries(rest)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const text = (value, tag = "p", cls = "text") => make(tag, { cls, dir: "auto" }, value);
  const titled = (title) => make("h4", {}, title);
  const folded = (title, ...inside) => make("details", {}, make("summary", {}, title), ...inside);

  const person = (context) => {
    const parts = [];
    if (context.persona.length) parts.push(text(context.persona.join(" ")));
    if (context.hidden.length) parts.push(text(`Not in the prompt: ${context.hidden.join(" ")}`));
    if (context.aspects.length) parts.push(make("p", {}, "Expectations of an answer:"),
      make("ul", {}, ...context.aspects.map((one) => make("li", { dir: "auto" }, one))));
    if (context.posts.length) {
      const total = context.posts.length + context.more;
      parts.push(folded(`${total} post${total === 1 ? "" : "s"} of this person`,
        ...context.posts.map((one) => text(one, "div", "text reply")),
        ...(context.more ? [make("p", {}, `${context.more} more posts are not on this page.`)] : [])));
    }
    return parts.length ? [titled("Person"), ...parts] : [];
  };

  const answers = (item) => {
    const least = Math.min(...item.answers.map((one) => one.rank ?? 1));
    const ranked = item.answers.some((one) => (one.rank ?? least) !== least);
    const titles = item.answers.map((one) => {
      const truth = item.models.find(Boolean)?.truth;
      const better = truth ? truth === one.name : ranked && one.rank === least;
      const rank = ["chosen", "rejected"].includes(one.name) || one.rank === null ? "" : `, rank ${one.rank}`;
      const name = one.name === "chosen" ? "Chosen" : one.name === "rejected" ? "Rejected" : `Answer ${one.name}`;
      return [`${name}${rank}${truth && better ? ", this person’s choice" : ""}`, better];
    });
    return make("div", { cls: "answers" }, ...item.answers.map((one, place) => make("div",
      { cls: titles[place][1] ? "answer better" : "answer" }, make("h5", {}, titles[place][0]), text(one.text, "div"))));
  };

  const number = (value) => value === null || value === undefined ? "–" : Number(value.toPrecision(4)).toString();
  const describe = (outcomes, labels) => {
    const entries = Object.entries(outcomes);
    const one = entries.length === 1 && entries[0][1] === 1;
    return entries.map(([name, count]) => one ? labels[name] : `${count} ${labels[name]}`).join(", ");
  };

  const scores = (item, index) => {
    const scored = item.models.some((one) => one && one.scores.some((value) => value !== null && value !== undefined));
    const sure = item.models.some((one) => one && one.certainty !== null);
    const names = scored ? item.answers.map((one) => one.name) : [];
    const heads = ["model", "outcome", ...names.map((one) => `score of ${one}`), ...(sure ? ["certainty"] : [])];
    const table = make("table", {}, make("caption", {}, "Outcome by model"), make("thead", {}, make("tr", {},
      ...heads.map((one, place) => make("th", { scope: "col", ...(place > 1 ? { cls: "number" } : {}) }, one)))));
    const body = make("tbody");
    item.models.forEach((one, place) => {
      if (!one) return;
      const won = Object.keys(one.outcomes).every((name) => name === "win");
      const row = make("tr", {}, make("th", { scope: "row", dir: "auto" }, index.models[place]),
        make("td", { cls: won ? "right" : "wrong" }, describe(one.outcomes, index.labels.outcomes)));
      for (const value of scored ? one.scores : []) row.append(make("td", { cls: "number" }, number(value)));
      if (sure) row.append(make("td", { cls: "number" }, number(one.certainty)));
      body.append(row);
    });
    table.append(body);
    const replies = item.models.flatMap((one, place) => one?.replies.length ? [folded(
      `Replies of ${index.models[place]}`, ...one.replies.map(([title, reply]) => make("div", { cls: "reply" },
        make("p", {}, title), text(reply, "div"))))] : []);
    return [make("div", { cls: "scroll", role: "region", tabindex: "0", "aria-label": "Outcome by model" }, table),
      ...replies];
  };

  const withoutTexts = (index, place) => {
    const rows = index.models.map((name, model) => [name, index.right[model][place], index.margin[model][place]]);
    return [make("p", {}, `The texts of this item are not on this page. Outcomes:`), make("ul", {},
      ...rows.map(([name, right, margin]) => make("li", { dir: "auto" }, `${name}: ${right < 0 ? "not counted"
        : `${right} of ${index.of[place]} right`}${margin === null ? "" : `, margin ${margin}`}`)))];
  };

  const show = async (root, index, place) => {
    const chunk = index.texts[place];
    if (chunk === undefined) return make("div", { cls: "item" }, ...withoutTexts(index, place));
    const item = (await block(`${root.id}-texts-${chunk}`))[place];
    return make("div", { cls: "item" },
      ...item.prompt.flatMap(([role, content]) => [titled(role === "user" ? "Prompt" : role[0].toUpperCase() + role.slice(1)),
        text(content, "div")]),
      ...person(item.person), titled("Answers"), answers(item), titled("Models"), ...scores(item, index));
  };

  const marks = (index, place) => {
    const counted = index.right.filter((one) => one[place] >= 0);
    const all = counted.filter((one) => one[place] === index.of[place]).length;
    return counted.length ? `${all} of ${counted.length} model${counted.length === 1 ? "" : "s"} right` : "not counted";
  };

  const listed = (root, index, places) => {
    const list = root.querySelector("ol");
    const more = root.querySelector("[data-more]");
    let shown = 0;
    list.replaceChildren();
    const add = () => {
      for (const place of places.slice(shown, shown + AT_ONCE)) {
        const subset = index.subset[place] < 0 ? "" : `, ${index.subsets[index.subset[place]]}`;
        const where = `${index.configs[index.config[place]]}${subset}`;
        const button = make("button", { type: "button", "aria-expanded": "false" },
          make("span", { cls: "name", dir: "auto" }, index.id[place]),
          make("span", { cls: "marks", dir: "auto" }, where), make("span", { cls: "marks" }, marks(index, place)));
        const inside = make("div");
        let content;
        button.addEventListener("click", () => {
          const open = button.getAttribute("aria-expanded") === "true";
          button.setAttribute("aria-expanded", String(!open));
          inside.hidden = open;
          content ??= show(root, index, place).then((item) => inside.append(item));
        });
        list.append(make("li", {}, button, inside));
      }
      shown = Math.min(shown + AT_ONCE, places.length);
      more.hidden = shown >= places.length;
    };
    more.onclick = add;
    add();
    root.querySelector("output").textContent = `${places.length.toLocaleString("en")} item${places.length === 1 ? "" : "s"}`;
  };

  const choose = async (root) => {
    const index = await block(`${root.id}-index`);
    const wanted = root.querySelector("input").value.trim().toLocaleLowerCase();
    const order = root.querySelector("[data-order]").value;
    const model = root.querySelector("[data-wrong]");
    if (model.options.length === 1) index.models.forEach((name, place) => model.add(new Option(`wrong by ${name}`, place)));
    const places = order === "all" ? index.id.map((_, place) => place) : index.orders[order];
    const names = (place) => `${index.id[place]} ${index.configs[index.config[place]]} ${index.subsets[index.subset[place]] ?? ""}`;
    const wrong = index.right[model.value];
    listed(root, index, places.filter((place) => (!wanted || names(place).toLocaleLowerCase().includes(wanted))
      && (!wrong || (wrong[place] >= 0 && wrong[place] < index.of[place]))));
  };

  for (const root of document.querySelectorAll(".items")) {
    const controls = root.querySelector(".controls");
    root.querySelector("[data-open]").addEventListener("click", (event) => {
      event.target.hidden = true;
      controls.hidden = false;
      choose(root).then(() => controls.querySelector("select").focus());
    });
    controls.addEventListener("input", () => choose(root));
  }
})();
