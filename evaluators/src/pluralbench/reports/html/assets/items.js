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
  const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
  const answerName = (name) => ["chosen", "rejected", "step"].includes(name.split(" ")[0]) ? name : `answer ${name}`;
  const capital = (word) => word[0].toUpperCase() + word.slice(1);

  // An item.

  const person = (item, index) => {
    const context = item.person;
    const parts = [];
    const read = new Map();
    item.models.forEach((one, place) => {
      if (one?.context) read.set(one.context, [...(read.get(one.context) ?? []), index.models[place]]);
    });
    for (const [one, names] of read) parts.push(text(read.size === 1 ? one : `${names.join(", ")}: ${one}`));
    if (context.persona.length) parts.push(text(context.persona.join(" ")));
    if (context.hidden.length) parts.push(text(`Not in the prompt: ${context.hidden.join(" ")}`));
    if (context.aspects.length) parts.push(folded(`${plural(context.aspects.length, "expectation")} of an answer`,
      make("ul", {}, ...context.aspects.map((one) => make("li", { dir: "auto" }, one)))));
    if (context.posts.length) {
      parts.push(folded(`${plural(context.posts.length + context.more, "post")} of this user`,
        ...context.posts.map((one) => text(one, "div", "text reply")),
        ...(context.more ? [make("p", {}, `${context.more} more posts are not on this page.`)] : [])));
    }
    return parts.length ? [titled("User"), ...parts] : [];
  };

  const answers = (item) => {
    const least = Math.min(...item.answers.map((one) => one.rank ?? 1));
    const ranked = item.answers.some((one) => (one.rank ?? least) !== least);
    const truth = item.models.find(Boolean)?.truth;
    return make("div", { cls: "answers" }, ...item.answers.map((one) => {
      const better = truth ? truth === one.name : ranked && one.rank === least;
      const name = answerName(one.name);
      const rank = name === one.name || one.rank === null ? "" : `, rank ${one.rank}`;
      const title = `${capital(name)}${rank}${truth && better ? ", this person’s choice" : ""}`;
      return make("div", { cls: better ? "answer better" : "answer" }, make("h5", {}, title), text(one.text, "div"));
    }));
  };

  const number = (value) => value === null || value === undefined ? "–" : Number(value.toPrecision(4)).toString();
  const describe = (outcomes, labels) => {
    const entries = Object.entries(outcomes);
    const one = entries.length === 1 && entries[0][1] === 1;
    return entries.map(([name, count]) => one ? labels[name] : `${count} ${labels[name]}`).join(", ");
  };

  // Votes of people: all, each group of an attribute, and which models prefer an answer.
  const votes = (item, index) => {
    if (!item.votes.length) return [];
    const [all, ...groups] = item.votes;
    const count = (one) => one.votes.reduce((a, b) => a + b, one.ties);
    if (count(all) === 1) {
      const known = groups.filter((one) => one.group !== null).map((one) => `${one.attribute}: ${one.group}`);
      return known.length ? [titled("Who chose"), text(known.join("; "))] : [];
    }
    const ties = all.ties > 0;
    const sides = item.models.map((one, place) => [one?.side, index.models[place]]);
    const prefer = (side) => sides.filter(([one]) => one === side).map(([, name]) => name).join(", ");
    const tied = ties || prefer(-1);
    const heads = ["people", "votes", ...item.answers.map((one) => answerName(one.name)), ...(tied ? ["a tie"] : [])];
    const row = (name, one) => {
      const cells = [...one.votes, ...(tied ? [one.ties] : [])];
      const most = Math.max(...cells);
      return make("tr", {}, make("th", { scope: "row", dir: "auto" }, name), make("td", { cls: "number" }, String(count(one))),
        ...cells.map((value) => make("td", { cls: value === most ? "number best" : "number" }, String(value))));
    };
    const heading = (name) => make("tr", {}, make("th", { scope: "rowgroup", colspan: heads.length, cls: "marks" }, name));
    const bodies = [make("tbody", {}, row("all", all))];
    if (sides.some(([one]) => one !== null && one !== undefined)) {
      const places = [...item.answers.keys(), ...(tied ? [-1] : [])];
      bodies[0].append(make("tr", {}, make("th", { scope: "row" }, "preferred by"), make("td", {}),
        ...places.map((side) => make("td", { dir: "auto", cls: "number" }, prefer(side)))));
    }
    for (const name of new Set(groups.filter((one) => one.group !== null).map((one) => one.attribute))) {
      bodies.push(make("tbody", {}, heading(name), ...groups.filter((one) => one.attribute === name)
        .map((one) => row(one.group ?? "not known", one))));
    }
    const caption = "Votes of people by group, the most in bold";
    const head = heads.map((name, place) => make("th", { scope: "col", ...(place ? { cls: "number" } : {}) }, name));
    return [titled("Votes of people"), make("div", { cls: "scroll", role: "group", tabindex: "0", "aria-label": caption },
      make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...head)), ...bodies))];
  };

  // A row for each model: outcome, scores of all answers, and a judge's verdict in each order.
  const scores = (item, index) => {
    const models = item.models.map((one, place) => [one, index.models[place]]).filter(([one]) => one);
    const any = (has) => models.some(([one]) => has(one));
    const known = (value) => value !== null && value !== undefined;
    const orders = [...new Set(models.flatMap(([one]) => Object.keys(one.orders)))];
    const columns = [["outcome", (one) => [describe(one.outcomes, index.labels),
      Object.keys(one.outcomes).every((name) => name === "win") ? "right" : "wrong"]]];
    if (any((one) => known(one.credit) && (one.credit % 1 || Object.values(one.outcomes).reduce((a, b) => a + b) > 1)))
      columns.push(["credit", (one) => [number(one.credit), "number"]]);
    if (any((one) => one.english)) columns.push(["in English", (one) => [index.labels[one.english] ?? "–", ""]]);
    if (any((one) => one.scores.some(known))) item.answers.forEach((answer, place) => columns.push([answerName(answer.name), (one) => {
      const best = known(one.scores[place]) && one.scores[place] === Math.max(...one.scores.filter(known));
      return [number(one.scores[place]), best ? "number best" : "number"];
    }]));
    for (const first of orders) columns.push([`${answerName(first)} shown first`, (one) => [one.orders[first] ?? "–", ""]]);
    if (any((one) => one.certainty !== null)) columns.push(["certainty", (one) => [number(one.certainty), "number"]]);
    const caption = any((one) => one.scores.some(known)) ? "Outcome and score of each answer, the highest in bold" : "Outcome by model";
    const head = ["model", ...columns.map(([name]) => name)].map((name, place) => {
      const cls = place && columns[place - 1][1](models[0][0])[1].startsWith("number") ? { cls: "number" } : {};
      return make("th", { scope: "col", dir: "auto", ...cls }, name);
    });
    const rows = models.map(([one, name]) => make("tr", {}, make("th", { scope: "row", dir: "auto" }, name),
      ...columns.map(([, of]) => { const [value, cls] = of(one); return make("td", { cls, dir: "auto" }, value); })));
    const table = make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...head)),
      make("tbody", {}, ...rows));
    const judges = models.filter(([one]) => one.replies.length || one.reasons.length);
    return [make("div", { cls: "scroll", role: "group", tabindex: "0", "aria-label": caption }, table),
      ...judges.flatMap(([one, name]) => [make("h4", { dir: "auto" }, `Replies of ${name}`),
        ...one.reasons.map((reason) => text(`Invalid: ${reason}.`)),
        make("div", { cls: "answers" }, ...one.replies.map(([title, reply]) => make("div", { cls: "answer" },
          make("h5", { dir: "auto" }, capital(title)), text(reply, "div"))))])];
  };

  const withoutTexts = (index, place) => [make("p", {}, "The texts of this item are not on this page. Outcomes:"),
    make("ul", {}, ...index.models.map((name, model) => {
      const [right, margin] = [index.right[model][place], index.margin[model][place]];
      const outcome = right < 0 ? "not counted" : `${right} of ${index.of[place]} right`;
      return make("li", { dir: "auto" }, `${name}: ${outcome}${margin === null ? "" : `, margin ${margin}`}`);
    }))];

  const contents = async (root, index, place) => {
    const chunk = index.texts[place];
    if (chunk === undefined) return withoutTexts(index, place);
    const item = (await block(`${root.id}-texts-${chunk}`))[place];
    return [...item.prompt.flatMap(([role, content]) => [titled(role === "user" ? "Prompt" : capital(role)), text(content, "div")]),
      ...person(item, index), titled("Answers"), answers(item),
      ...votes(item, index), titled("Models"), ...scores(item, index)];
  };

  // The list.

  const partOf = (index, place) => [index.configs[index.config[place]], index.subsets[index.subset[place]]]
    .filter((one) => one !== undefined).join(", ");
  const marks = (index, place) => {
    const counted = index.right.filter((one) => one[place] >= 0);
    const all = counted.filter((one) => one[place] === index.of[place]).length;
    if (index.models.length === 1 && counted.length) return all ? "right" : "wrong";
    return counted.length ? `${all} of ${plural(counted.length, "model")} right` : "not counted";
  };
  const divided = (index, place) => new Set(index.right.map((one) => one[place]).filter((one) => one >= 0)
    .map((one) => one === index.of[place])).size > 1;
  const lostBy = (index, model, place) => index.right[model][place] >= 0 && index.right[model][place] < index.of[place];

  // The items of a link: two of one config and id have numbers.
  const address = (index, place) => {
    if (!index.addresses) {
      const counts = new Map();
      index.addresses = index.id.map((id, at) => {
        const parts = [index.configs[index.config[at]], id].map(encodeURIComponent).join("/");
        counts.set(parts, (counts.get(parts) ?? 0) + 1);
        return counts.get(parts) === 1 ? parts : `${parts}/${counts.get(parts)}`;
      });
    }
    return index.addresses[place];
  };
  const link = (root, index, place) => `#item=${encodeURIComponent(root.dataset.name)}/${address(index, place)}`;

  const FLAGS = { divided: "models disagree", tie: "ties", invalid: "invalid", truncated: "truncated" };
  const fill = (select, options) => {
    for (const [value, name] of options) select.add(new Option(name, value));
    select.parentElement.hidden = !options.length;
  };
  const group = (select, label, names, letter) => {
    if (names.length < 2) return;
    select.append(make("optgroup", { label }, ...names.map((name, place) => new Option(name, letter + place))));
  };

  const places = (root, index) => {
    const of = (name) => root.querySelector(name).value;
    const [order, lost, flag, part] = ["[data-order]", "[data-lost]", "[data-flag]", "[data-part]"].map(of);
    const wanted = of("input").trim().toLocaleLowerCase();
    const flagged = flag && flag !== "divided" ? new Set(index.flags[flag]) : null;
    const names = (place) => `${index.title[place]} ${index.id[place]} ${partOf(index, place)}`.toLocaleLowerCase();
    const first = index.orders[order] ?? [];
    const sorted = new Set(first);
    // The items that an order does not sort come last; those that do not differ from English are left out.
    const rest = order === "flipped" ? [] : index.id.map((_, place) => place).filter((place) => !sorted.has(place));
    const all = [...first, ...rest];
    return all.filter((place) => (!lost || (lost === "any" ? index.right.some((_, model) => lostBy(index, model, place))
      : lostBy(index, lost, place)))
      && (!flag || (flagged ? flagged.has(place) : divided(index, place)))
      && (!part || String((part[0] === "c" ? index.config : index.subset)[place]) === part.slice(1))
      && (!wanted || names(place).includes(wanted)));
  };

  const listed = (root, index) => {
    const found = places(root, index);
    const list = root.querySelector("ol");
    const more = root.querySelector("[data-more]");
    list.replaceChildren();
    root.shown = found;
    root.more = () => {
      const start = list.children.length;
      for (const place of found.slice(start, start + AT_ONCE)) {
        const name = index.title[place] || index.id[place];
        const where = `${partOf(index, place)}${index.title[place] ? ` · ${index.id[place]}` : ""}`;
        list.append(make("li", {}, make("a", { href: link(root, index, place), "data-place": place },
          make("span", { cls: "name", dir: "auto" }, name), make("span", { cls: "marks", dir: "auto" }, where),
          make("span", { cls: "marks" }, marks(index, place)))));
      }
      more.hidden = list.children.length >= found.length;
      current(root);
    };
    more.onclick = root.more;
    root.more();
    const total = plural(index.items, "item");
    root.querySelector("output").textContent = found.length === index.items ? total : `${found.length.toLocaleString("en")} of ${total}`;
  };

  const current = (root) => {
    for (const one of root.querySelectorAll("ol a")) {
      if (Number(one.dataset.place) === root.place) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    }
  };

  const opened = (root) => root.opening ??= (async () => {
    const index = await block(`${root.id}-index`);
    fill(root.querySelector("[data-lost]"), [["any", "any model"], ...index.models.map((name, place) => [place, name])]);
    const present = Object.keys(FLAGS).filter((name) => index.flags[name]?.length
      || (name === "divided" && index.id.some((_, place) => divided(index, place))));
    fill(root.querySelector("[data-flag]"), present.map((name) => [name, FLAGS[name]]));
    const part = root.querySelector("[data-part]");
    group(part, "Configs", index.configs, "c");
    group(part, "Categories", index.subsets, "s");
    part.parentElement.hidden = part.options.length === 1;
    root.querySelector("[data-open]").hidden = true;
    root.querySelector("[data-browse]").hidden = false;
    listed(root, index);
    return index;
  })();

  // The item that the address names.

  const roots = [...document.querySelectorAll(".items")];
  const missing = make("p", { cls: "missing", role: "alert" });

  const close = (root) => {
    if (root.place === undefined) return;
    root.place = undefined;
    root.classList.remove("open");
    root.querySelector(".item").hidden = true;
    current(root);
  };

  const open = async (root, index, place) => {
    const parts = await contents(root, index, place);
    for (const other of roots) if (other !== root) close(other);
    root.place = place;
    root.classList.add("open");
    current(root);
    const at = root.shown.indexOf(place);
    const step = (by, name) => make("a", at >= 0 && root.shown[at + by] !== undefined
      ? { href: link(root, index, root.shown[at + by]) } : { "aria-disabled": "true" }, name);
    const item = root.querySelector(".item");
    item.replaceChildren(make("p", { cls: "steps" }, make("a", { href: `#${root.id}`, "data-close": "" }, "All items"),
      step(-1, "Previous"), step(1, "Next"),
      make("span", {}, at < 0 ? "" : `${(at + 1).toLocaleString("en")} of ${root.shown.length.toLocaleString("en")}`),
      make("a", { href: link(root, index, place), title: "The address of this item" }, "Link")),
      make("p", { cls: "marks", dir: "auto" }, `${partOf(index, place)} · ${index.id[place]}`), ...parts);
    item.hidden = false;
    item.scrollTop = 0;
  };

  const named = async (address) => {
    const [name, ...rest] = address.split("/");
    const root = roots.find((one) => encodeURIComponent(one.dataset.name) === name);
    if (!root) return undefined;
    const index = await opened(root);
    link(root, index, 0);
    return [root, index, index.addresses.indexOf(rest.join("/"))];
  };

  const reveal = (root) => {
    for (let around = root; around; around = around.parentElement) if (around.tagName === "DETAILS") around.open = true;
  };

  const follow = async () => {
    const wanted = location.hash.startsWith("#item=") ? location.hash.slice(6) : null;
    missing.remove();
    if (wanted === null) { roots.forEach(close); return; }
    const found = await named(wanted);
    if (found) reveal(found[0]);
    if (location.hash.slice(6) !== wanted) return;
    if (found && found[2] >= 0) {
      const [root, index, place] = found;
      const before = root.place;
      await open(root, index, place);
      const item = root.querySelector(".item");
      if (before === undefined || item.getBoundingClientRect().top < 0 || item.getBoundingClientRect().top > innerHeight)
        root.querySelector(".panes").scrollIntoView();
      return;
    }
    roots.forEach(close);
    const parts = (() => { try { return wanted.split("/").map(decodeURIComponent); } catch { return [wanted]; } })();
    const item = parts.slice(1).join("/");
    const [listed, all] = found ? [found[1].id.length, found[1].items].map((one) => one.toLocaleString("en")) : [];
    missing.textContent = found
      ? `This page has no item “${item}” of ${parts[0]}${listed === all ? "" : `, of which it lists ${listed} of ${all} items`}.`
      : roots.length ? `This page has no items of “${parts[0]}”, only of ${roots.map((one) => one.dataset.name).join(", ")}.`
      : "This page has no items.";
    if (found) found[0].prepend(missing); else document.querySelector("main").prepend(missing);
    missing.scrollIntoView({ block: "center" });
  };

  // Moving by keys replaces the address, so that Back leads to the item that was chosen before.
  const move = async (root, by) => {
    const index = await opened(root);
    const at = root.place === undefined ? (by > 0 ? -1 : 0) : root.shown.indexOf(root.place);
    const place = root.shown[at + by];
    if (place === undefined) return;
    if (at + by >= root.querySelector("ol").children.length) root.more();
    const first = root.place === undefined;
    history[first ? "pushState" : "replaceState"](null, "", link(root, index, place));
    await follow();
    const button = root.querySelector(`ol a[data-place="${place}"]`);
    (button.offsetParent ? button : root.querySelector(".item")).focus({ preventScroll: true });
    if (button.offsetParent) button.scrollIntoView({ block: "nearest" });
  };

  const leave = (root) => {
    const place = root.place;
    history.pushState(null, "", `#${root.id}`);
    close(root);
    (root.querySelector(`ol a[data-place="${place}"]`) ?? root.querySelector("select")).focus();
  };

  for (const root of roots) {
    root.querySelector("[data-open]").addEventListener("click", async () => {
      await opened(root);
      root.querySelector("select").focus();
    });
    root.querySelector(".controls").addEventListener("input", async () => listed(root, await opened(root)));
    root.addEventListener("click", (event) => {
      if (!event.target.closest("[data-close]")) return;
      event.preventDefault();
      leave(root);
    });
    root.addEventListener("keydown", (event) => {
      if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
      const inList = event.target.closest("ol");
      const by = event.key === "j" || (inList && event.key === "ArrowDown") ? 1
        : event.key === "k" || (inList && event.key === "ArrowUp") ? -1 : 0;
      if (by) { event.preventDefault(); move(root, by); }
      if (event.key === "Escape" && root.place !== undefined) leave(root);
    });
  }
  addEventListener("hashchange", follow);
  if (location.hash.startsWith("#item=")) follow();
})();
