// The demo shop's page: its buttons ask the shop's back end, and what it shows is what the back end read from the
// application. It decides nothing.

const query = new URLSearchParams(location.search);
const orderID = query.get("order");
const orderPath = `/orders/${encodeURIComponent(orderID)}`;

const $ = (id) => document.getElementById(id);

/** An element with a class and contents, which are text or elements. */
function make(tag, className, ...contents) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...contents);
  return element;
}

/** Minor units as a person writes them. No arithmetic: an amount is an integer and stays one. */
function rupees(paise) {
  const digits = String(paise).padStart(3, "0");
  return `₹${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

const inWords = (name) => name.replaceAll("_", " ");

/** What the page remembers of the order while the browser is away at the application. */
const memory = {
  read: (name) => JSON.parse(sessionStorage.getItem(`${name} ${orderID}`) ?? "[]"),
  write: (name, value) => sessionStorage.setItem(`${name} ${orderID}`, JSON.stringify(value)),
};

/** Calls the shop's back end: GET, or POST if there is a body. */
async function call(path, body) {
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, body && post);
  } catch {
    throw new Error("The shop does not answer. Is it still running?");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function complain(error) {
  $("problem").textContent = error?.message ?? "";
  $("problem").hidden = !error;
}

// ---------------------------------------------------------------- what the person does

let busy = false;

/** Runs what a button does. Clicks that come meanwhile are not meant. */
async function act(does) {
  if (busy) return;
  busy = true;
  try {
    complain(null);
    await does();
  } catch (error) {
    complain(error);
  } finally {
    busy = false;
  }
}

async function newOrder() {
  const { id } = await call("/orders", {});
  location.assign(`/?${new URLSearchParams({ order: id })}`);
}

async function attempt(name) {
  beginStep();
  const { said, callback } = await call(`${orderPath}/attempts`, { attempt: name });
  say(said);
  if (callback) goBack(callback);
  else await refresh();
}

async function refund(amount) {
  beginStep();
  // The id makes a call that is repeated on the way the same request.
  const id = `click-${crypto.randomUUID().slice(0, 8)}`;
  const { said } = await call(`${orderPath}/refunds`, amount ? { id, amount: Number(amount) } : { id });
  say(said);
  await refresh();
}

/** Sends the browser to the application, as the gateway's checkout does: a form, not a script's call. */
function goBack({ action, fields }) {
  const form = make("form");
  form.method = "post";
  form.action = action;
  for (const [name, value] of Object.entries(fields)) {
    const input = make("input");
    Object.assign(input, { type: "hidden", name, value });
    form.append(input);
  }
  document.body.append(form);
  form.submit();
}

function say(sentence) {
  memory.write("said", [sentence, ...memory.read("said")]);
  showSaid();
}

function showSaid() {
  const said = memory.read("said");
  if (said.length) $("said").replaceChildren(...said.map((sentence) => make("li", "", sentence)));
}

/** Says what the application's callback answered, by sending the browser here. */
function showReturn() {
  const status = query.get("status");
  if (!status) return;
  $("returned").replaceChildren("Your browser came back by ", make("code", "", `POST /checkout/razorpay/${orderID}`),
    " with ", make("code", "", `status=${status}`), ".");
  $("returned").classList.toggle("paid", status === "paid");
  $("returned").classList.toggle("unknown", status === "unknown");
  $("returned").hidden = false;
}

// ---------------------------------------------------------------- what the application says

let shown = ""; // as it came
let shownVersion = 0; // of the order
let shownEntries = []; // by key, oldest first
let changedAt = Date.now();

async function refresh() {
  const view = await call(orderPath);
  const text = JSON.stringify(view);
  if (text === shown || view.order.version < shownVersion) return; // nothing new, or an answer that was overtaken
  shown = text;
  shownVersion = view.order.version;
  changedAt = Date.now();
  showOrder(view);
  showTimeline(view.entries);
}

function showOrder({ order, not_fulfilled: why, meanings, refundable }) {
  for (const id of ["status", "badge"]) {
    $(id).textContent = inWords(order.status);
    $(id).className = `status ${order.status}`;
  }
  $("price").textContent = rupees(order.amount);
  $("fulfilled").textContent = order.fulfilled_at ? `Fulfilled at ${clock(order.fulfilled_at)} UTC.` : `Not fulfilled: ${why}.`;

  const amounts = { expected: order.amount, captured: order.amount_paid, refunded: order.amount_refunded };
  $("amounts").replaceChildren(...Object.entries(amounts).map(
    ([name, amount]) => make("div", "", make("dt", "", name), make("dd", "", rupees(amount))),
  ));
  showRows("holds", order.holds.map((hold) => [
    make("strong", "", inWords(hold.reason)), make("code", "", hold.subject),
    make("span", `tag${hold.blocking && !hold.acknowledged ? " bad" : ""}`, effectOf(hold)),
    make("span", "wide", `${hold.detail ? `${hold.detail}: ` : ""}${meanings[hold.reason]}.`),
  ]));
  showRows("payments", order.payments.map((payment) => row(payment, payment.captured ? "good" : payment.status === "failed" ? "bad" : "")));
  showRows("refunds", order.refunds.map((refund) => row(refund, refund.status === "processed" ? "good" : "", `of ${refund.payment_id}`)));

  $("refundable").textContent = rupees(refundable);
  for (const button of document.querySelectorAll("[data-refund]")) {
    button.disabled = refundable < (Number(button.dataset.refund) || 1);
  }
}

const effectOf = (hold) => (hold.acknowledged ? "acknowledged" : hold.blocking ? "blocks the fulfilment" : "does not block");

function row({ id, status, amount }, kind, ...more) {
  return [make("code", "", id), make("span", `tag ${kind}`, status), ...more.map((text) => make("code", "", text)),
    make("span", "amount", rupees(amount))];
}

function showRows(name, rows) {
  $(name).replaceChildren(...rows.map((cells) => make("li", "", ...cells)));
  $(`${name}-part`).hidden = rows.length === 0;
}

/** The time of day of a moment, UTC to the millisecond. */
const clock = (moment) => new Date(moment).toISOString().slice(11, 23);

/** Shows the timeline, keeping the lines that are there already. */
function showTimeline(entries) {
  const old = new Set(memory.read("old"));
  const before = new Map([...$("timeline").children].map((line) => [line.dataset.key, line]));
  shownEntries = entries.map((entry) => JSON.stringify(entry));
  const lines = entries.map((entry, i) => before.get(shownEntries[i]) ?? makeLine(entry, shownEntries[i], !old.has(shownEntries[i])));
  $("timeline").replaceChildren(...lines.reverse());
}

function makeLine(entry, key, isNew) {
  const time = make("time", "", clock(entry.at));
  time.dateTime = entry.at;
  const line = make("li", isNew ? "new" : "", time, make("span", "from", entry.source), make("span", "what", entry.what));
  if (entry.verdict) line.append(make("span", "verdict", entry.status ? `${entry.status}: ${entry.verdict}` : entry.verdict));
  line.dataset.key = key;
  line.dataset.source = entry.source;
  return line;
}

/** From here on lines are new that are not shown yet. */
function beginStep() {
  memory.write("old", shownEntries);
  for (const line of $("timeline").children) line.classList.remove("new");
  changedAt = Date.now();
}

let lost = false; // the last look failed

/** Looks every second while the page is seen, and every five once nothing has changed for half a minute. */
async function watch() {
  if (document.visibilityState === "visible") {
    try {
      await refresh();
      if (lost) complain(null);
      lost = false;
    } catch (error) {
      complain(error);
      lost = true;
    }
  }
  setTimeout(watch, Date.now() - changedAt < 30_000 ? 1_000 : 5_000);
}

// ---------------------------------------------------------------- start

$("new").addEventListener("click", () => act(newOrder));
for (const button of document.querySelectorAll("[data-attempt]")) {
  button.addEventListener("click", () => act(() => attempt(button.dataset.attempt)));
}
for (const button of document.querySelectorAll("[data-refund]")) {
  button.addEventListener("click", () => act(() => refund(button.dataset.refund)));
}
if (orderID) {
  $("order-id").textContent = orderID;
  $("get-order").textContent = `GET /orders/${orderID}`;
  for (const part of document.querySelectorAll(".with-order")) part.hidden = false;
  showReturn();
  showSaid();
  watch();
}
