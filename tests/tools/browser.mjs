// Opens a page in Chromium, by its DevTools protocol, and prints what came of it as JSON:
//   node browser.mjs WS CHROMIUM PAGE QUESTIONS FOLDER
// WS is the package `ws`; QUESTIONS is a file, a JSON array of [name, expression]; screenshots go to FOLDER.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [ws, chromium, page, questions, folder] = process.argv.slice(2);
const { WebSocket } = await import(pathToFileURL(ws).href);
const profile = join(folder, "profile");
rmSync(profile, { recursive: true, force: true });
mkdirSync(profile, { recursive: true });
const browser = spawn(chromium, ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
  "--no-first-run", "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"], { stdio: "ignore" });
const errors = [];
try {
  const portFile = join(profile, "DevToolsActivePort");
  for (let tries = 0; !existsSync(portFile) || !readFileSync(portFile, "utf8").includes("\n"); tries += 1) {
    if (tries > 600 || browser.exitCode !== null) throw new Error("the browser does not start");
    await sleep(100);
  }
  const port = readFileSync(portFile, "utf8").split("\n")[0];
  let target;
  while (!target) {
    const list = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
    target = list.find(({ type }) => type === "page");
    if (!target) await sleep(100);
  }
  const socket = new WebSocket(target.webSocketDebuggerUrl, { maxPayload: 1 << 28 });
  await new Promise((resolve, reject) => { socket.on("open", resolve); socket.on("error", reject); });
  const waiting = new Map();
  const events = new Map();
  let last = 0;
  socket.on("message", text => {
    const message = JSON.parse(text);
    if (message.id) {
      const { resolve, reject } = waiting.get(message.id);
      waiting.delete(message.id);
      return message.error ? reject(new Error(message.error.message)) : resolve(message.result);
    }
    const { method, params } = message;
    if (method === "Runtime.exceptionThrown") errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === "Runtime.consoleAPICalled" && params.type === "error") errors.push(JSON.stringify(params.args));
    if (method === "Log.entryAdded" && params.entry.level === "error") errors.push(params.entry.text);
    events.get(method)?.();
  });
  const send = (method, params = {}) => new Promise((resolve, reject) => {
    waiting.set(++last, { resolve, reject });
    socket.send(JSON.stringify({ id: last, method, params }));
  });
  const evaluate = async expression => {
    const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) errors.push(`${expression}: ${exceptionDetails.exception?.description}`);
    return result.value ?? null;
  };
  const screenshot = async name => {
    const { data } = await send("Page.captureScreenshot", { format: "png" });
    writeFileSync(join(folder, name), Buffer.from(data, "base64"));
  };
  for (const domain of ["Runtime", "Log", "Page"]) await send(`${domain}.enable`);
  await send("Emulation.setDeviceMetricsOverride", { width: 1280, height: 900, deviceScaleFactor: 1, mobile: false });
  await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: "light" }] });
  const loaded = new Promise(resolve => events.set("Page.loadEventFired", resolve));
  const began = performance.now();
  await send("Page.navigate", { url: pathToFileURL(page).href });
  await loaded;
  // Two frames, so that what is drawn was drawn.
  await evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
  const milliseconds = Math.round(performance.now() - began);
  await screenshot("light.png");
  const answers = {};
  for (const [name, expression] of JSON.parse(readFileSync(questions, "utf8"))) answers[name] = await evaluate(expression);
  await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: "dark" }] });
  answers.dark = await evaluate("getComputedStyle(document.body).backgroundColor");
  await screenshot("dark.png");
  console.log(JSON.stringify({ milliseconds, errors, answers }));
  socket.close();
} finally {
  const ended = new Promise(resolve => browser.once("exit", resolve));
  browser.kill();
  await Promise.race([ended, sleep(5000)]);
  rmSync(profile, { recursive: true, force: true, maxRetries: 20 });
}
