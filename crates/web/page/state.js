// The server's state: saved to a file by the browser, and restored from one.

import { byId, element } from "./dom.js";

/** Browsers may start reading a download only after the click, in ms. */
const DOWNLOAD_MS = 60000;

/** Connects the buttons: `ask` sends a request and shows a failure, `tell` shows what was done. */
export function startState(ask, tell) {
  byId("save").onclick = async () => {
    const answer = await ask("/state");
    if (answer) keep(await answer.blob(), `${byId("name").textContent}.json`);
  };
  byId("restore").onclick = () => byId("file").click();
  byId("file").onchange = async () => {
    const [file] = byId("file").files;
    if (!file) return;
    const answer = await ask("/state", { method: "POST", headers: { "Content-Type": "application/json" }, body: file });
    // Allows choosing the same file again.
    byId("file").value = "";
    if (!answer) return;
    const { not_restored: failures } = await answer.json();
    if (failures.length) report(file.name, failures);
    else tell(`“${file.name}” is restored.`);
  };
  byId("close").onclick = () => byId("report").close();
}

function keep(blob, name) {
  const url = URL.createObjectURL(blob);
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), DOWNLOAD_MS);
}

function report(name, failures) {
  byId("report-title").textContent = `“${name}” was restored, except for:`;
  byId("failures").replaceChildren(...failures.map((failure) => element("li", { textContent: `not restored: ${failure}` })));
  byId("report").showModal();
}
