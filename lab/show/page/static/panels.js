// Beside the replicas: the verdict, the phone, the tables, and how much this room has tried.
import { $, h, set } from "./dom.js";
import { t, told } from "./words.js";

export function verdict(state) {
  const { verdict } = state;
  const said = { bad: [], good: [] };
  for (const e of verdict?.effects ?? []) {
    const how = outcome(e);
    (e.outcome === "once" ? said.good : said.bad).push([told(e, "title"), how, e.subjects.join(", ")]);
  }
  const certain = verdict?.certain;
  const kind = !verdict ? "open" : verdict.unknown ? "open" : !certain ? "open" : verdict.ok ? "good" : "bad";
  const sign = { open: "…", good: "✓", bad: "✗" }[kind];
  const shown = said.bad.length ? said.bad : said.good;
  const grouped = {};
  for (const [name, how] of shown) (grouped[how] ??= new Set()).add(name);
  const line = Object.entries(grouped).map(([how, names]) => `${[...names].join(", ")} ${how}`).join("; ");
  const head = kind === "bad" ? `${t("bad")}: ${line}` : t(kind);
  const under = !verdict ? t("willWake") : verdict.unknown ? t("unknownRun")
    : kind === "open" ? (line ? `${t("sofar")}: ${line}` : t("none"))
      : said.bad.map(([, , who]) => who).slice(0, 1).join("");
  const element = $("#verdict");
  set(element, { "data-kind": kind, "data-code": verdict?.code ?? "", "data-certain": String(!!certain) });
  element.replaceChildren(h("b", { class: "sign", "aria-hidden": "true" }, sign),
    h("div", {}, h("strong", {}, head), h("p", {}, under)));
}

// What became of an effect, with its numbers where the word does not tell them.
function outcome({ outcome, times, expected }) {
  const word = t(outcome, times, expected);
  if (["once", "duplicated", "missed"].includes(outcome)) return word;
  if (outcome === "phantom") return times > 1 ? `${word} ${times}×` : word;
  if (times === expected) return times < 0 ? `${word}: ${times}` : word;
  return `${word}: ${t("instead", times, expected)}`;
}

export function phone(state) {
  const { phone } = state;
  const element = $("#phone");
  set(element, { hidden: !phone });
  if (!phone) return;
  const wrong = phone.wallet !== null && phone.wallet !== phone.due;
  const told = phone.told.map(([text, minutes]) => h("li", {}, text, minutes === null ? null
    : h("small", {}, ` ${minutes ? t("minutes", minutes) : t("now")}`)));
  const wallet = phone.wallet === null ? null
    : h("span", { class: "wallet", "data-wrong": String(wrong && phone.wallet !== 0) },
      `${t("wallet")} `, h("b", {}, `+${phone.wallet}`),
      wrong ? h("small", {}, ` (${t("should", phone.due)})`) : null);
  element.replaceChildren(h("h2", {}, h("span", {}, phone.name || t("pushes")), wallet),
    told.length ? h("ol", {}, told) : h("p", { class: "quiet" }, t("noNews")));
}

export function tables(state) {
  const pending = {};
  for (const replica of state.replicas) {
    for (const one of replica.open) {
      const rows = Number(one.tag.split(" ").at(-1)) || 1;
      const of = (pending[one.table] ??= {});
      const key = `${replica.letter} ${one.label.split(" ")[0]}`;
      of[key] = (of[key] ?? 0) + rows;
    }
  }
  const names = new Set([...state.tables.map((one) => one.name), ...Object.keys(pending)]);
  const shown = [...names].map((name) => table(
    state.tables.find((one) => one.name === name) ?? { name, columns: [], rows: [], count: 0 },
    pending[name] ?? {}));
  $("#tables").replaceChildren(h("h2", {}, t("tables"), " ", h("small", {}, t("committed"))),
    ...(shown.length ? shown : [h("p", { class: "quiet" }, t("none"))]));
}

function table({ name, columns, rows, count }, pending) {
  const width = Math.max(1, columns.length + 1);
  return h("table", {}, h("caption", {}, name, " ", h("small", {}, `(${count})`)),
    columns.length ? h("thead", {}, h("tr", {}, h("th", {}), columns.map((c) => h("th", { scope: "col" }, c)))) : null,
    h("tbody", {}, rows.map((row) => h("tr", { class: row.new ? "new" : "" },
      h("td", { "aria-label": row.new ? t("isNew") : null }, row.new ? "+" : ""),
      row.cells.map((cell) => h("td", { title: cell }, cell)))),
    Object.entries(pending).map(([who, rows]) => h("tr", { class: "pending" },
      h("td", {}, "✎"), h("td", { colspan: width - 1 || 1 },
        `${t("rows", who, rows)} — ${t("notCommitted")}`)))));
}

export function tried(state, count) {
  const { tried } = state;
  const number = (n) => n.toLocaleString("en");
  const total = tried.complete ? number(tried.total ?? 0) : t("atLeast", number(tried.total ?? 0));
  $("#tried").replaceChildren(tried.total === null ? t("tried", tried.count, tried.broke)
    : t("triedOf", tried.count, total, tried.broke, number(tried.breaking)), " ");
  if (!tried.complete) $("#tried").append(h("button", { onclick: count }, t("count")));
  set($("#tried"), { hidden: tried.total === null && !tried.count,
    "data-count": String(tried.count), "data-total": String(tried.total) });
}

export function note(state) {
  const { note } = state;
  $("#note").textContent = !note ? "" : note.kind === "failing" ? t("failingIs", `${note.schedule} → ${note.code}`)
    : t("noneFails");
}
