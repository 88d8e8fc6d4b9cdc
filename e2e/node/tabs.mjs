// Tabs of one browser that show threads with the page in the directory page, which is the working directory. It reads
// commands as JSON lines, and prints one line for each. It only reports; the Go tests check.
//
//   argument: the URL of the page
//   in:  {open: thread, count}     opens tabs
//        {say: text, thread}       sends a message from the first tab of the thread
//        {reload: thread}          reloads the first tab of the thread
//        {closeLeader: true}       closes the tab that holds the WebSockets
//        {until: {text?, status?, shows?}, thread?}  waits until the last message of every tab contains the text, the run has
//                                  the status, and the page shows the text
//        {fill: text, tab}         types a text into the only text field of a tab, by its index
//        {click: name, tab}        clicks the button with the name
//        {show: true}
//   out: {tabs: [{thread, messages, connection, status}], problems: [text]}
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { chromium } = createRequire(join(process.cwd(), "package.json"))("playwright-core");

const [url] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--renderer-process-limit=4", "--disable-gpu"] });
const context = await browser.newContext();
const tabs = new Set();
const problems = [];
let changed = () => {};

await context.exposeBinding("report", ({ page }, snapshot) => {
  for (const tab of tabs) if (tab.page === page) tab.snapshot = snapshot;
  changed();
});
// Pages without a report of their own report their text.
await context.addInitScript(() => {
  const report = () => window.store || void window.report({ shown: document.body?.innerText ?? "" });
  new MutationObserver(report).observe(document, { subtree: true, childList: true, characterData: true });
});

async function open(thread) {
  const page = await context.newPage();
  const tab = { page, thread, snapshot: {} };
  tabs.add(tab);
  page.on("pageerror", (error) => problems.push(String(error)));
  // While the server restarts, the browser reports connections that fail.
  page.on("console", (line) => line.type() === "error" && !/WebSocket|Failed to load resource/.test(line.text()) && problems.push(line.text()));
  await page.goto(`${url}#${thread}`);
}

async function reload(tab) {
  tab.snapshot = {};
  await tab.page.reload();
}

const of = (thread) => [...tabs].filter((tab) => thread === undefined || tab.thread === thread);

function matches({ snapshot }, { text, status, shows }) {
  const last = snapshot.messages?.at(-1);
  return (
    (text === undefined || String(last?.content ?? "").includes(text)) &&
    (status === undefined || snapshot.status === status) &&
    (shows === undefined || snapshot.shown?.includes(shows))
  );
}

async function until(condition, thread) {
  while (!of(thread).every((tab) => matches(tab, condition))) await new Promise((resolve) => (changed = resolve));
}

// The client ID of a page is the owner of its locks.
const holdsSockets = () =>
  navigator.locks.request("identity " + Math.random(), async ({ name }) => {
    const { held } = await navigator.locks.query();
    const { clientId } = held.find((lock) => lock.name === name);
    // A tab has a lock with its ID after the name of the leader's lock.
    return held.some((lock) => lock.clientId === clientId && lock.name.startsWith("perdure ") && held.some((other) => other.name.startsWith(lock.name + " ")));
  });

async function closeLeader() {
  for (const tab of tabs) {
    if (!(await tab.page.evaluate(holdsSockets))) continue;
    tabs.delete(tab);
    return tab.page.close();
  }
  problems.push("no tab holds the WebSockets");
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const [first] = of(command.thread);
  if (command.open) await Promise.all(Array.from({ length: command.count }, () => open(command.open)));
  if (command.say) await first.page.evaluate((text) => window.store.send(text), command.say);
  const tab = [...tabs][command.tab ?? 0];
  if (command.fill) await tab.page.getByRole("textbox").fill(command.fill);
  if (command.click) await tab.page.getByRole("button", { name: command.click }).click();
  if (command.reload) await reload(of(command.reload)[0]);
  if (command.closeLeader) await closeLeader();
  if (command.until) await until(command.until, command.thread);
  const shown = [...tabs].map(({ thread, snapshot }) => ({ thread, ...snapshot }));
  process.stdout.write(JSON.stringify({ tabs: shown, problems }) + "\n");
}
await browser.close();
