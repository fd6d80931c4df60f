// Bars and lines over days, drawn without a library because they have few points. A button shows the same figures as a
// table.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useWidth } from "./lane";

export type Series = { name: string; values: (number | null)[] };
type Format = (value: number) => string;

/** Number of colours for series; each also has its own hatching. */
const COLOURS = 8;
const BOTTOM = 22;
/** Maximum width of a character in a label. */
const CHARACTER = 6.4;
/** Possible steps of a time scale, seconds. */
const TIMES = [1, 5, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 2 * 3_600, 3 * 3_600, 4 * 3_600, 6 * 3_600, 12 * 3_600, 24 * 3_600];

/** A figure with its title, its legend, and its table. */
export function Figure({
  title,
  about,
  labels,
  series,
  format,
  children,
  head = "Day",
}: {
  title: string;
  about?: ComponentChildren;
  labels: string[];
  series: Series[];
  format: Format;
  children: ComponentChildren;
  head?: string;
}) {
  const tabular = useSignal(false);
  const empty = labels.length === 0 || series.every(({ values }) => values.every((value) => value === null || value === 0));
  return (
    <figure class="figure panel">
      <figcaption>
        <div>
          <h2>{title}</h2>
          {about !== undefined && <p class="muted small">{about}</p>}
        </div>
        {!empty && (
          <button type="button" class="button small" aria-pressed={tabular.value} onClick={() => (tabular.value = !tabular.value)}>
            {tabular.value ? "Picture" : "Table"}
          </button>
        )}
      </figcaption>
      {empty ? (
        <p class="muted figure-empty">Nothing in this period.</p>
      ) : tabular.value ? (
        <div class="table-scroll figure-table" tabIndex={0} role="region" aria-label={`${title}, table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">{head}</th>
                {series.map(({ name }) => (
                  <th key={name} scope="col" class="number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {labels.map((label, index) => (
                <tr key={label}>
                  <th scope="row">{label}</th>
                  {series.map(({ name, values }) => {
                    const value = values[index] ?? null;
                    return (
                      <td key={name} class="number">
                        {value === null ? "—" : format(value)}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <>
          {children}
          {series.length > 1 && (
            <ul class="legend">
              {series.map(({ name }, index) => (
                <li key={name}>
                  <span class={`swatch series-${index % COLOURS}`} aria-hidden="true" />
                  {name}
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </figure>
  );
}

/** A round number at or above a value. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 2.5, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}

/** The kind of values on a scale, which determines its lines. */
export type Scale = "amount" | "count" | "seconds";

/** The top of a scale, chosen so that its half is round too. */
export function scale(value: number, kind: Scale): number {
  const half = value / 2;
  if (kind === "seconds") return 2 * (TIMES.find((step) => step >= half) ?? 24 * 3_600 * Math.ceil(half / (24 * 3_600)));
  if (kind === "amount") return 2 * roundUp(half);
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, half))));
  return 2 * power * ([1, 1.5, 2, 3, 5, 10].find((step) => step * power >= half && Number.isInteger(step * power)) ?? 10);
}

type Props = {
  title: string;
  about?: ComponentChildren;
  labels: string[];
  series: Series[];
  format: Format;
  height?: number;
  head?: string;
  axis?: (label: string) => string;
  kind?: Scale;
};

/** Stacked bars, one for each label. */
export function Bars({ title, about, labels, series, format, height = 190, head, axis = (label) => label, kind = "amount" }: Props) {
  const [element, width] = useWidth<HTMLDivElement>();
  const sums = labels.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
  const most = scale(Math.max(0, ...sums), kind);
  // Room for the longest label next to the lines.
  const left = Math.ceil(Math.max(...[0, 0.5, 1].map((part) => format(most * part).length)) * CHARACTER) + 12;
  const room = height - BOTTOM - 8;
  const step = (width - left) / Math.max(1, labels.length);
  const wide = Math.max(1, Math.min(46, step * 0.72));
  const y = (value: number): number => 8 + room - (value / most) * room;
  const longest = Math.max(0, ...labels.map((label) => axis(label).length)) * CHARACTER;
  const every = Math.max(1, Math.ceil((longest + 14) / Math.max(1, step)));
  // Keep a label inside the picture and clear of the labels of the lines.
  const middle = (index: number): number => {
    const half = (axis(labels[index] ?? "").length * CHARACTER) / 2;
    return Math.min(Math.max(left + step * index + step / 2, left - 4 + half), width - half);
  };
  return (
    <Figure title={title} about={about} labels={labels} series={series} format={format} {...(head === undefined ? {} : { head })}>
      <div ref={element} class="chart" style={{ height: `${height}px` }}>
        {width > 0 && (
          <svg width={width} height={height} role="img" aria-label={`${title}; the button “Table” shows the figures`}>
            <Grid most={most} left={left} width={width} y={y} format={format} />
            {labels.map((label, index) => {
              const x = left + step * index + (step - wide) / 2;
              let below = 0;
              return (
                <g key={label}>
                  <title>{`${label}: ${series.map(({ name, values }) => `${name} ${format(values[index] ?? 0)}`).join(", ")}`}</title>
                  <rect x={left + step * index} y={0} width={step} height={height - BOTTOM} class="chart-hover" />
                  {series.map(({ name, values }, which) => {
                    const value = values[index] ?? 0;
                    if (value <= 0) return null;
                    const bottom = y(below);
                    below += value;
                    const high = Math.max(1, bottom - y(below));
                    return <rect key={name} x={x} y={bottom - high} width={wide} height={high} class={`series-${which % COLOURS}`} />;
                  })}
                  {index % every === 0 && (
                    <text x={middle(index)} y={height - 6} text-anchor="middle">
                      {axis(label)}
                    </text>
                  )}
                </g>
              );
            })}
          </svg>
        )}
      </div>
    </Figure>
  );
}

function Grid({ most, left, width, y, format }: { most: number; left: number; width: number; y: (value: number) => number; format: Format }) {
  return (
    <>
      {[0, 0.5, 1].map((part) => (
        <g key={part}>
          <path d={`M${left} ${Math.round(y(most * part)) + 0.5}H${width}`} class="chart-grid" />
          <text x={left - 8} y={y(most * part) + 4} text-anchor="end">
            {format(most * part)}
          </text>
        </g>
      ))}
    </>
  );
}
