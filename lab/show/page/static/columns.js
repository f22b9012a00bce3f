// A column a replica: its state, the code it is in, what it wrote and has not committed, its buttons.
import { $, h, set } from "./dom.js";
import { t } from "./words.js";

const SIGNS = { idle: "☾", held: "‖", waiting: "◴", frozen: "❄", finished: "■", dead: "✖", failed: "!" };
const MORE = [["toCommit", "..commit", ","], ["toEnd", "..", "."], ["kill", ".kill", "Delete"],
  ["cutBefore", ".cut-before", "-"], ["cutAfter", ".cut-after", "+"], ["freeze", ".freeze", "*"]];

let built = "";

// Buttons are made once for a cast, so that the focus stays where it is.
export function columns(state, chosen, order, parts) {
  const cast = JSON.stringify([state.stage.name, state.letters, state.programs]);
  if (cast !== built) {
    $("#replicas").replaceChildren(...state.replicas.map((r, index) => column(r, index, state, order, parts)));
    $("#bar").replaceChildren(...state.replicas.map((r) => h("button", { "data-letter": r.letter, onclick: go(order, r.letter, "step") })),
      h("button", { onclick: () => $("#undo").click(), "data-t": "undo" }, t("undo")));
    built = cast;
  }
  for (const replica of state.replicas) fill(replica, state, chosen);
}

const moves = {};  // letter -> button -> the move that it makes, where it makes one

const go = (order, letter, button) => () => order("move", () => {
  const move = moves[letter]?.[button];
  return move !== undefined && { text: letter + move };
});

function column(replica, index, state, order, parts) {
  const letter = replica.letter;
  const programs = h("select", { class: "program", onchange: (event) => order("cast", {
    ...parts(), roles: { ...parts().roles, [letter]: event.target.value } }) },
    state.programs.map((name) => h("option", { value: name }, name)));
  return h("article", { class: `replica of-${"ABCDEF"[index]}`, id: `replica-${letter}` },
    h("h2", {}, h("b", {}, letter), h("span", { class: "state" }), h("span", { class: "relations" }), programs),
    h("p", { class: "next" }), h("p", { class: "trail" }),
    h("pre", { class: "code", tabindex: 0 }),
    h("p", { class: "open" }),
    h("div", { class: "buttons" },
      h("button", { class: "step", "aria-keyshortcuts": letter, onclick: go(order, letter, "step") }),
      MORE.map(([name, , key]) => h("button", {
        class: `more ${name}`, "aria-keyshortcuts": key, onclick: go(order, letter, name) }))));
}

function fill(replica, state, chosen) {
  const { letter } = replica;
  const column = $(`#replica-${letter}`);
  const failed = replica.state === "finished" && replica.last?.failed;
  const kind = failed ? "failed" : replica.state;
  set(column, { "data-state": kind, "data-chosen": letter === chosen, "aria-label": letter });
  $(".state", column).textContent = `${SIGNS[kind]} ${t(kind, replica.waits_for.join(", "))}`;
  $(".program", column).value = replica.program;
  set($(".program", column), { "aria-label": t("program", letter), hidden: state.programs.length < 2 });
  $(".relations", column).textContent =
    replica.blocks.length ? `⇐ ${t("blocks", replica.blocks.join(", "))}` : "";
  next($(".next", column), replica, failed);
  $(".trail", column).textContent = replica.trail.join(" › ") || replica.code?.file || "";
  code($(".code", column), replica);
  $(".open", column).replaceChildren(...replica.open.length
    ? [h("b", {}, `✎ ${t("notCommitted")}: `), written(replica.open).join(" · ")] : []);
  buttons(column, replica);
}

function written(open) {
  const rows = {};
  for (const { label, table, tag } of open) {
    const key = `${{ INSERT: "+", DELETE: "−" }[label.split(" ")[0]] ?? "~"} ${table}`;
    rows[key] = (rows[key] ?? 0) + Number(tag.split(" ").at(-1));
  }
  return Object.entries(rows).map(([key, n]) => key.replace(" ", `${n} `));
}

function next(element, replica, failed) {
  if (replica.next) {
    element.replaceChildren(h("small", {}, `${t("next")} `), h("code", { title: replica.next.sql }, replica.next.label));
  } else if (replica.last) {
    const { kind, label, outcome } = replica.last;
    const told = ["statement", "request"].includes(kind);
    const said = kind === "end" ? "" : told ? label : t(`${kind}!`);
    const how = (told && replica.state !== "waiting" && outcome !== label) || kind === "end" ? outcome : "";
    element.replaceChildren(h("small", {}, `${t("lastly")} `), h("code", {}, `${said} ${how}`.trim()));
  } else {
    element.textContent = t(replica.state === "idle" ? "firstMove" : "nothing");
  }
}

function code(element, replica) {
  const { code } = replica;
  set(element, { hidden: !code, "aria-label": code ? `${code.file} ${code.function}` : null });
  if (!code) return;
  element.replaceChildren(...code.lines.map(([number, line]) => {
    const here = number >= code.start && number <= code.end;
    const quiet = /^\s*#/.test(line);
    return h("span", { class: `line${here ? " here" : ""}${quiet ? " quiet" : ""}`,
      "aria-current": here ? "step" : null },
      h("i", { "aria-hidden": "true" }, here && number === code.start ? "▶" : String(number)),
      h("span", {}, line.replace(/^ +/, (spaces) => spaces.slice(spaces.length / 2)) || " "));
  }));
  const here = $(".here", element);
  const last = here && [...element.querySelectorAll(".here")].at(-1);
  if (here) {
    const room = element.clientHeight - (last.offsetTop + last.offsetHeight - here.offsetTop);
    element.scrollTop = here.offsetTop - Math.max(0, room / 2);
  } else element.scrollTop = 0;
}

function buttons(column, replica) {
  const { letter, state } = replica;
  const [name, move] = { idle: ["start", ".start"], finished: ["again", ".again"],
    dead: ["newProcess", ".restart"], frozen: ["thaw", ".thaw"] }[state] ?? ["step", ""];
  // Buttons that cannot act now stay where the focus can find them, and do nothing.
  const able = { step: state !== "waiting",
    toCommit: ["idle", "held"].includes(state), toEnd: ["idle", "held"].includes(state),
    kill: state !== "dead", cutBefore: state === "held", cutAfter: state === "held",
    freeze: !["dead", "frozen"].includes(state) };
  const all = [["step", move], ...MORE].filter(([name]) => able[name]);
  moves[letter] = Object.fromEntries(all.map(([name, move]) => [name, move]));
  for (const one of [$(".step", column), $(`#bar [data-letter="${letter}"]`)]) {
    one.replaceChildren(h("kbd", {}, letter), ` ${t(name)}`);
    set(one, { "aria-label": `${t(name)} ${letter}`, "aria-disabled": !able.step ? "true" : null });
  }
  for (const [name, , key] of MORE) {
    const one = $(`.more.${name}`, column);
    one.textContent = t(name);
    set(one, { "aria-label": `${t(name)} ${letter}`, "aria-disabled": !able[name] ? "true" : null,
      title: `${t(`${name}Title`) === `${name}Title` ? t(name) : t(`${name}Title`)} (${key})` });
  }
}
