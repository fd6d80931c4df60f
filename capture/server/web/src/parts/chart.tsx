// Bars and lines over days, drawn by hand: few points, no library. A table of the same figures is one press away.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useWidth } from "./lane";

export type Series = { name: string; values: (number | null)[] };
type Format = (value: number) => string;

/** Names of the colours of series: each also has its own hatching. */
const COLOURS = 8;
const LEFT = 52;
const BOTTOM = 22;

/** A figure with its title, its legend, and its table. */
export function Figure({ title, about, labels, series, format, children, head = "Day" }: { title: string; about?: ComponentChildren; labels: string[]; series: Series[]; format: Format; children: ComponentChildren; head?: string }) {
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

/** The top of a scale: round in units, or in their sixtieths when it is less than two. */
function scale(value: number, unit: number): number {
  const step = unit > 1 && value < unit * 2 ? unit / 60 : unit;
  return roundUp(value / step / 2) * 2 * step;
}

type Props = { title: string; about?: ComponentChildren; labels: string[]; series: Series[]; format: Format; height?: number; head?: string; axis?: (label: string) => string; /** What the lines of the scale are multiples of, when that is more than 1. */ unit?: number };

/** Stacked bars, one for each label. */
export function Bars({ title, about, labels, series, format, height = 190, head, axis = (label) => label, unit = 1 }: Props) {
  const [element, width] = useWidth<HTMLDivElement>();
  const sums = labels.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
  const most = scale(Math.max(0, ...sums), unit);
  const room = height - BOTTOM - 8;
  const step = (width - LEFT) / Math.max(1, labels.length);
  const wide = Math.max(1, Math.min(46, step * 0.72));
  const y = (value: number): number => 8 + room - (value / most) * room;
  const every = Math.max(1, Math.ceil(54 / Math.max(1, step)));
  return (
    <Figure title={title} about={about} labels={labels} series={series} format={format} {...(head === undefined ? {} : { head })}>
      <div ref={element} class="chart" style={{ height: `${height}px` }}>
        {width > 0 && (
          <svg width={width} height={height} role="img" aria-label={`${title}; the button “Table” shows the figures`}>
            <Grid most={most} width={width} y={y} format={format} />
            {labels.map((label, index) => {
              const x = LEFT + step * index + (step - wide) / 2;
              let below = 0;
              return (
                <g key={label}>
                  <title>{`${label}: ${series.map(({ name, values }) => `${name} ${format(values[index] ?? 0)}`).join(", ")}`}</title>
                  <rect x={LEFT + step * index} y={0} width={step} height={height - BOTTOM} class="chart-hover" />
                  {series.map(({ name, values }, which) => {
                    const value = values[index] ?? 0;
                    if (value <= 0) return null;
                    const bottom = y(below);
                    below += value;
                    const high = Math.max(1, bottom - y(below));
                    return <rect key={name} x={x} y={bottom - high} width={wide} height={high} class={`series-${which % COLOURS}`} />;
                  })}
                  {index % every === 0 && (
                    <text x={LEFT + step * index + step / 2} y={height - 6} text-anchor="middle">
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

function Grid({ most, width, y, format }: { most: number; width: number; y: (value: number) => number; format: Format }) {
  return (
    <>
      {[0, 0.5, 1].map((part) => (
        <g key={part}>
          <path d={`M${LEFT} ${Math.round(y(most * part)) + 0.5}H${width}`} class="chart-grid" />
          <text x={LEFT - 8} y={y(most * part) + 4} text-anchor="end">
            {format(most * part)}
          </text>
        </g>
      ))}
    </>
  );
}
