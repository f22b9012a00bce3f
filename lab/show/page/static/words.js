// What the page says, in English and in Spanish. {0}, {1} … are filled in.
const WORDS = {
  en: {
    title: "Be the scheduler", stage: "Stage", replicas: "Replicas", projector: "Projector",
    keys: "Keys", language: "Español", skip: "To the replicas", schedule: "Schedule",
    play: "Play", copy: "Copy", copied: "Copied", undo: "Undo", restart: "From the start",
    failing: "Show a failing one", scenario: "Scenarios", world: "Change the world",
    verdict: "Verdict", phone: "Phone", tables: "Tables", timeline: "Timeline", bar: "Steps",
    minute: "+1 min", program: "Program of {0}",
    idle: "asleep", held: "held", waiting: "waits for {0}", frozen: "frozen", finished: "finished",
    dead: "dead", failed: "error", blocks: "{0} waits for it",
    next: "next", nothing: "nothing to run", lastly: "last", firstMove: "its run has not begun",
    start: "Wake up", step: "Step", again: "Run again", newProcess: "New process", thaw: "Thaw",
    toCommit: "to COMMIT", toEnd: "to the end", kill: "Kill", cutBefore: "Cut before",
    cutAfter: "Cut after", freeze: "Freeze",
    killTitle: "SIGKILL of the real process",
    cutBeforeTitle: "Break the connection before the statement reaches Postgres",
    cutAfterTitle: "Break it after the statement ran, before the answer arrives",
    freezeTitle: "SIGSTOP: it stays where it is, with its locks",
    notCommitted: "not committed", rows: "{0} × {1}", committed: "committed",
    none: "Nothing has changed yet.", isNew: "new", more: "{0} rows in all",
    wallet: "wallet", should: "it should be +{0}", noNews: "no notifications",
    pushes: "The buyer's phone", minutes: "{0} min ago", now: "now",
    open: "Not certain yet", sofar: "if it ended here", good: "Certain: every effect once",
    bad: "Certain", willWake: "Nobody has woken up yet.", unknownRun: "it cannot be judged",
    once: "once", duplicated: "{0}× instead of {1}×", missed: "missing", phantom: "phantom",
    lost: "lost", late: "late", early: "early", negative: "negative", stuck: "stuck",
    "given away": "given away", instead: "{0} instead of {1}", isolation: "Isolation level",
    triedOf: "Schedules of these replicas that this room has tried: {0} of {1}; {2} broke it. Of all, {3} do.",
    tried: "Schedules of these replicas that this room has tried: {0}; {1} broke it.",
    count: "Count them all", atLeast: "at least {0}", counting: "Running schedules: {0} so far …",
    failingIs: "This one breaks it: {0}", noneFails: "No schedule here breaks it.",
    gone: "The connection to the lab is lost. Trying again …",
    "commit!": "COMMIT", "rollback!": "ROLLBACK", "kill!": "killed", "cut!": "connection cut",
    "freeze!": "frozen", "thaw!": "goes on", "tick!": "wakes up", "end!": "end of the run",
    "waiting!": "waits for {0}", undone: "undone", noRow: "no row", holdsLock: "holds a lock",
    "look:ran": "ran", "look:undone": "undone", "look:waiting": "waiting", "look:no-row": "got no row",
    "look:error": "error", "look:lost": "no answer", violation: "violation",
    help: [["A B C …", "the large button of the replica: wake up, step, run again …"],
      ["Shift + A …", "choose a replica; the keys below act on it"], [",", "run to COMMIT"],
      [".", "run to the end"], ["Delete", "kill"], ["-", "cut before"], ["+", "cut after"],
      ["*", "freeze, or thaw"], ["Backspace", "undo"], ["Home", "from the start"],
      ["T", "a minute passes"], ["/", "write a schedule"], ["?", "these keys"]],
  },
  es: {
    title: "Sé el planificador", stage: "Etapa", replicas: "Réplicas", projector: "Proyector",
    keys: "Teclas", language: "English", skip: "Ir a las réplicas", schedule: "Secuencia",
    play: "Correr", copy: "Copiar", copied: "Copiado", undo: "Deshacer", restart: "Desde cero",
    failing: "Muéstrame una que falle", scenario: "Escenarios", world: "Cambiar el mundo",
    verdict: "Veredicto", phone: "Teléfono", tables: "Tablas", timeline: "Línea de tiempo",
    bar: "Pasos", minute: "+1 min", program: "Programa de {0}",
    idle: "dormida", held: "detenida", waiting: "espera a {0}", frozen: "congelada",
    finished: "terminó", dead: "muerta", failed: "error", blocks: "{0} la espera",
    next: "sigue", nothing: "nada que correr", lastly: "último", firstMove: "todavía no despierta",
    start: "Despertar", step: "Paso", again: "Otra vez", newProcess: "Proceso nuevo",
    thaw: "Descongelar",
    toCommit: "hasta COMMIT", toEnd: "hasta el final", kill: "Matar", cutBefore: "Cortar antes",
    cutAfter: "Cortar después", freeze: "Congelar",
    killTitle: "SIGKILL al proceso de verdad",
    cutBeforeTitle: "Cortar la conexión antes de que la sentencia llegue a Postgres",
    cutAfterTitle: "Cortarla cuando ya corrió, antes de que llegue la respuesta",
    freezeTitle: "SIGSTOP: se queda donde está, con sus bloqueos",
    notCommitted: "sin confirmar", rows: "{0} × {1}", committed: "confirmado",
    none: "Todavía no cambia nada.", isNew: "nuevo", more: "{0} filas en total",
    wallet: "cartera", should: "debería ser +{0}", noNews: "sin notificaciones",
    pushes: "El teléfono de quien compra", minutes: "hace {0} min", now: "ahora",
    open: "Aún no es seguro", sofar: "si acabara aquí", good: "Seguro: cada efecto una vez",
    bad: "Seguro", willWake: "Nadie ha despertado todavía.", unknownRun: "no se puede juzgar",
    once: "una vez", duplicated: "{0} veces en vez de {1}", missed: "sin llegar", phantom: "de la nada",
    lost: "con pérdida", late: "a destiempo", early: "antes de tiempo", negative: "bajo cero",
    stuck: "sin liberar", "given away": "de más", instead: "{0} en vez de {1}",
    isolation: "Nivel de aislamiento",
    triedOf: "Secuencias de estas réplicas que ha probado este salón: {0} de {1}; rompen: {2}. De todas, rompen {3}.",
    tried: "Secuencias de estas réplicas que ha probado este salón: {0}; rompen: {1}.",
    count: "Contarlas todas", atLeast: "al menos {0}", counting: "Corriendo secuencias: van {0} …",
    failingIs: "Esta la rompe: {0}", noneFails: "Aquí ninguna secuencia la rompe.",
    gone: "Se perdió la conexión con el laboratorio. Reintentando …",
    "commit!": "COMMIT", "rollback!": "ROLLBACK", "kill!": "la mataron", "cut!": "conexión cortada",
    "freeze!": "congelada", "thaw!": "sigue", "tick!": "despierta", "end!": "fin",
    "waiting!": "espera a {0}", undone: "deshecho", noRow: "ninguna fila", holdsLock: "tiene un bloqueo",
    "look:ran": "corrió", "look:undone": "deshecho", "look:waiting": "espera",
    "look:no-row": "ninguna fila", "look:error": "error", "look:lost": "sin respuesta",
    violation: "violación",
    help: [["A B C …", "el botón grande de la réplica: despertar, paso, otra vez …"],
      ["Mayús + A …", "elegir una réplica; las teclas de abajo actúan sobre ella"],
      [",", "correr hasta COMMIT"], [".", "correr hasta el final"], ["Supr", "matar"],
      ["-", "cortar antes"], ["+", "cortar después"], ["*", "congelar o descongelar"],
      ["Retroceso", "deshacer"], ["Inicio", "desde cero"], ["T", "pasa un minuto"],
      ["/", "escribir una secuencia"], ["?", "estas teclas"]],
  },
};

let language = localStorage.getItem("language") || (navigator.language.startsWith("es") ? "es" : "en");

export const speaks = () => language;

export function speak(other) {
  language = other;
  localStorage.setItem("language", other);
}

export function t(key, ...values) {
  const text = WORDS[language][key] ?? key;
  if (typeof text !== "string") return text;
  return text.replace(/\{(\d)\}/g, (_, n) => values[n]);
}

// What the server says of a thing: its text in the page's language, where it has one.
export const told = (thing, key) => (language === "es" && thing.es?.[key]) || thing[key];
