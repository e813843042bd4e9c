// The plan as a table: the same as the picture, for those who read rather than look.
import { bytes, microseconds, percent, quantity } from "../base/format.ts";
import type { GraphModel } from "./graph_model.ts";
import { PagedTable, type Column } from "./paged_table.ts";
import type { Value } from "./trace.ts";

type Row = number; // a node

export function nodesTable(model: GraphModel, choose: (node: number) => void): PagedTable<Row> {
  const node = (row: Row) => model.run?.plan.nodes[row];
  const figures = (row: Row) => model.figures.get(row);
  const value = (row: Row): Value | undefined => figures(row)?.record.values[0];
  const measured = (
    name: string,
    read: (row: Row) => number | null | undefined,
    format: (amount: number) => string,
  ): Column<Row> => ({
    name,
    numeric: true,
    text: (row) => {
      const amount = read(row);
      return amount === null || amount === undefined ? "–" : format(amount);
    },
    key: (row) => read(row) ?? -Infinity,
  });
  return new PagedTable<Row>({
    caption: "Nodes of the plan",
    choose,
    isChosen: (row) => row === model.selected,
    columns: [
      { name: "Node", text: (row) => node(row)?.name ?? "" },
      { name: "Op", text: (row) => node(row)?.op ?? "" },
      {
        name: "Split",
        numeric: true,
        text: (row) => splitText(node(row)?.split ?? -1),
        key: (row) => node(row)?.split ?? -1,
      },
      { name: "Device", text: (row) => node(row)?.device || "–" },
      {
        name: "Makes",
        text: (row) =>
          node(row)
            ?.outputs.map(({ dtype, shape }) => `${dtype} [${shape.join(", ")}]`)
            .join(", ") ?? "",
      },
      measured(
        "Time",
        (row) => (node(row)?.kind === "input" ? null : figures(row)?.time),
        microseconds,
      ),
      measured(
        "Share",
        (row) => (node(row)?.kind === "input" ? null : figures(row)?.share),
        percent,
      ),
      measured("Bytes", (row) => figures(row)?.bytes, bytes),
      measured("Operations", (row) => figures(row)?.operations, quantity),
      measured("Min", (row) => value(row)?.min, quantity),
      measured("Max", (row) => value(row)?.max, quantity),
      measured("Mean", (row) => value(row)?.mean, quantity),
      measured("Mean magnitude", (row) => value(row)?.meanMagnitude, quantity),
    ],
  });
}

function splitText(split: number): string {
  return split < 0 ? "–" : String(split);
}

/** All rows, or those that a search found: in the order of the picture. */
export function tableRows(model: GraphModel): number[] {
  const all = [...model.scene.boxOf.keys()];
  return model.matches ? all.filter((node) => model.matches?.has(node)) : all;
}
