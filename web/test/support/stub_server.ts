// A server with the API that the page uses, which answers by rote: what the last message says
// decides how it behaves. Free port, loopback.
import { readFile, readdir } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";

const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

export interface Asked {
  body: Record<string, unknown>;
  authorization: string | undefined;
}

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export class StubServer {
  readonly asked: Asked[] = [];
  readonly hungUp: string[] = []; // the last message of each request whose client went away early
  apiKey = "";
  replies = new Map<string, string>(); // what to say to which message
  live: string[] = []; // the lines of /trace/live
  liveLines = new Set<(line: string) => void>();

  private constructor(
    private readonly server: Server,
    private readonly files: Map<string, Buffer>,
  ) {}

  static async start(dist: string): Promise<StubServer> {
    const files = new Map<string, Buffer>();
    for (const name of await readdir(dist)) files.set(`/${name}`, await readFile(join(dist, name)));
    const server = createServer();
    const stub = new StubServer(server, files);
    server.on("request", (request, response) => {
      stub.answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return stub;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** Sends a line to everybody who watches, and to those who come later. */
  say(line: string): void {
    this.live.push(line);
    for (const send of this.liveLines) send(line);
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "/";
    const file = this.files.get(path === "/" ? "/index.html" : path);
    if (file) {
      response.writeHead(200, {
        "Content-Type":
          types[extname(path === "/" ? ".html" : path) || ".html"] ?? "text/html; charset=utf-8",
      });
      response.end(file);
      return;
    }
    if (this.apiKey && request.headers.authorization !== `Bearer ${this.apiKey}`) {
      return this.refuse(response, 401, "the API key is missing or wrong");
    }
    if (path === "/v1/models")
      return this.json(response, 200, {
        object: "list",
        data: [{ id: "fable-1m", object: "model" }],
      });
    if (path === "/trace/live") return this.stream(response);
    if (path === "/v1/chat/completions") return this.chat(request, response);
    this.refuse(response, 404, `there is no ${path}`);
  }

  private json(
    response: ServerResponse,
    status: number,
    body: unknown,
    headers: Record<string, string> = {},
  ): void {
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  }

  private refuse(
    response: ServerResponse,
    status: number,
    message: string,
    headers: Record<string, string> = {},
  ): void {
    this.json(
      response,
      status,
      { error: { message, type: "invalid_request_error", code: null } },
      headers,
    );
  }

  private stream(response: ServerResponse): void {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const send = (line: string) => void response.write(`data: ${line}\n\n`);
    this.live.forEach(send);
    this.liveLines.add(send);
    response.on("close", () => this.liveLines.delete(send));
    response.flushHeaders();
  }

  private async chat(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
    this.asked.push({ body, authorization: request.headers.authorization });
    const messages = body["messages"] as { content: string }[];
    const last = messages[messages.length - 1]?.content ?? "";
    if (last === "busy")
      return this.refuse(response, 429, "the queue is full", { "Retry-After": "3" });
    if (last === "too long")
      return this.refuse(response, 400, "the prompt has 5000 tokens, the context 2048");
    await this.reply(last, response);
  }

  private async reply(last: string, response: ServerResponse): Promise<void> {
    let gone = false;
    response.on("close", () => {
      if (!response.writableEnded) this.hungUp.push(last);
      gone = true;
    });
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const send = (value: unknown) => response.write(`data: ${JSON.stringify(value)}\n\n`);
    const piece = (content: string, finish: string | null = null) =>
      send({
        object: "chat.completion.chunk",
        choices: [{ index: 0, delta: { content }, finish_reason: finish }],
      });
    const text = this.replies.get(last) ?? `You said: ${last}`;
    const pieces = last.startsWith("slow")
      ? Array.from({ length: 2000 }, (_, index) => `word${index} `)
      : (text.match(/[\s\S]{1,7}/g) ?? []);
    for (const [index, part] of pieces.entries()) {
      if (gone) return;
      piece(part);
      if (last === "broken" && index === 1) {
        await wait(100); // so that what was sent arrives
        return void response.destroy();
      }
      if (last === "fault" && index === 1) {
        send({ error: { message: "the device was lost", type: "server_error" } });
        return void response.end();
      }
      await wait(last.startsWith("slow") ? 10 : 2);
    }
    piece("", "stop");
    send({
      choices: [],
      usage: {
        prompt_tokens: 12,
        completion_tokens: pieces.length,
        total_tokens: 12 + pieces.length,
      },
    });
    response.end("data: [DONE]\n\n");
  }
}
