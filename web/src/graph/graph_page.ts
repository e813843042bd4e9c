// The view of plans and runs.
import type { Client } from "../api/client.ts";

export class GraphPage {
  constructor(client: Client) {
    void client;
  }
  shown(_is: boolean): void {}
  coloursChanged(): void {}
}
