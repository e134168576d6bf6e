// Asks the service that this page came from, with the token that was typed, if one is needed.

const KEY = "anabranch-token";

export class Denied extends Error {}

function headers(more) {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

export function remember(token) {
  sessionStorage.setItem(KEY, token);
}

async function answer(response) {
  if (response.status === 401) throw new Denied("a token is needed");
  const body = await response.json();
  if (!response.ok) throw new Error(body.message);
  return body;
}

export async function get(path) {
  return answer(await fetch(`/api/v1${path}`, { headers: headers({}) }));
}

export async function post(path, body) {
  const all = headers({ "Content-Type": "application/json" });
  return answer(await fetch(`/api/v1${path}`, { method: "POST", headers: all, body: JSON.stringify(body) }));
}

export async function picture() {
  const response = await fetch("/api/v1/graph.svg?style=false", { headers: headers({}) });
  return response.ok ? response.text() : null;
}

// Reads server-sent events until the signal aborts. EventSource cannot send a token, so the stream is read here.
export async function events(take, signal) {
  const response = await fetch("/api/v1/events", { headers: headers({}), signal });
  if (!response.ok) return answer(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return undefined;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => {
        const at = line.indexOf(": ");
        return [line.slice(0, at), line.slice(at + 2)];
      }));
      if (fields.event) take(fields.event, JSON.parse(fields.data));
    }
  }
}
