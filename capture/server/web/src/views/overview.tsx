// All sessions over time: their work, how long they waited for the user, their failures, and their cost.

import { useSignal } from "@preact/signals";
import { call } from "../api/client";
import { FINDING_KINDS, type Overview, type Provider, type QuotaView, type UsageReport, type UsageRow } from "../api/routes";
import { now, restarts, row } from "../live/store";
import { Bars, type Series } from "../parts/chart";
import { Empty, Failed, Loading } from "../parts/feedback";
import { useLoad } from "../parts/load";
import { Title } from "../parts/sessions";
import { Shown } from "../parts/text";
import { address, parameter, setParameters } from "../router";
import { groupBy } from "../text/collect";
import { ago, basename, dollars, duration, moment, short } from "../text/format";
import { AGENTS, spaced } from "../text/names";
import { visible } from "../text/visible";
import { Lanes } from "./lanes";

const DAYS: [string, number][] = [
  ["24 h", 1],
  ["7 d", 7],
  ["30 d", 30],
  ["90 d", 90],
];
const DAY = 86_400_000;

/** The page. */
export function OverviewPage() {
  address.value;
  const days = DAYS.find(([, count]) => String(count) === parameter("days"))?.[1] ?? 7;
  return (
    <div class="overview">
      <div class="page-head">
        <h1 tabIndex={-1}>Overview</h1>
        <div class="segmented" role="group" aria-label="Period">
          {DAYS.map(([word, count]) => (
            <button key={word} type="button" aria-pressed={count === days} onClick={() => setParameters({ days: count === 7 ? "" : String(count) })}>
              {word}
            </button>
          ))}
        </div>
      </div>
      <Report key={days} days={days} />
      <Costs key={`costs ${days}`} days={days} />
    </div>
  );
}

/** The beginning of a period's first day, in this browser's time zone. */
function beginning(days: number): string {
  if (days === 1) return new Date(Date.now() - DAY).toISOString();
  const start = new Date();
  start.setHours(0, 0, 0, 0);
  start.setDate(start.getDate() - (days - 1));
  return start.toISOString();
}

const zone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;
const hours = (seconds: number): string => (seconds === 0 ? "0" : duration(seconds * 1000));
const MONTH_DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
/** `2026-11-23` in short form. */
const monthDay = (day: string): string => {
  const date = new Date(`${day}T12:00:00`);
  return Number.isNaN(date.getTime()) ? day : MONTH_DAY.format(date);
};

/** Every day of a period, in this browser's time zone. */
function calendar(since: string): string[] {
  const found: string[] = [];
  for (const day = new Date(since); day.getTime() <= Date.now(); day.setDate(day.getDate() + 1)) found.push(dayOf(day));
  const today = dayOf(new Date());
  return found.at(-1) === today ? found : [...found, today];
}

const two = (value: number): string => String(value).padStart(2, "0");
const dayOf = (day: Date): string => `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;

function Report({ days }: { days: number }) {
  const since = beginning(days);
  const { state, again } = useLoad((abort) => call("GET /api/v1/overview", { query: { since, tz: zone() }, signal: abort }), [days, restarts.value]);
  const { value, cause } = state.value;
  if (cause !== null && value === null) return <Failed cause={cause} retry={again} />;
  // What is below begins outside the window, so that it does not move in it.
  if (value === null) {
    return (
      <div key="place" class="report-place">
        <Loading lines={10} />
      </div>
    );
  }
  return (
    <>
      <Totals overview={value} />
      <Lanes lanes={value.lanes} more={value.more_lanes ?? 0} from={Date.parse(since)} until={now.value} />
      <div class="figures-grid">
        <Bars
          title="Time of agents, tools and waiting for you"
          about="Sum over all sessions of a day"
          labels={value.days.map(({ day }) => day)}
          axis={monthDay}
          format={hours}
          kind="seconds"
          series={[
            { name: "Agent", values: value.days.map(({ agent_s }) => agent_s) },
            { name: "Tools", values: value.days.map(({ tool_s }) => tool_s) },
            { name: "Waiting for you", values: value.days.map(({ waiting_s }) => waiting_s) },
          ]}
        />
        <FindingsByDay findings={value.findings} days={calendar(since)} />
        <Waits waits={value.approval_waits} />
      </div>
    </>
  );
}

function Totals({ overview }: { overview: Overview }) {
  const sum = (of: (day: Overview["days"][number]) => number): number => overview.days.reduce((total, day) => total + of(day), 0);
  const { p50_s, p90_s, buckets } = overview.approval_waits;
  const requests = buckets.reduce((total, { person, rule, expired }) => total + person + rule + expired, 0);
  const figures: [string, string, string?][] = [
    ["Sessions", String(overview.lanes.length + (overview.more_lanes ?? 0))],
    ["Agents worked", hours(sum(({ agent_s }) => agent_s))],
    ["Tools ran", hours(sum(({ tool_s }) => tool_s))],
    ["Waited for you", hours(sum(({ waiting_s }) => waiting_s))],
    ["Requests", String(requests)],
    ["Median answer time", p50_s === null ? "—" : duration(p50_s * 1000), p90_s === null ? undefined : `90 %: ${duration(p90_s * 1000)}`],
  ];
  return (
    <dl class="totals">
      {figures.map(([name, value, more]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {value}
            {more !== undefined && <small>{more}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Waits({ waits }: { waits: Overview["approval_waits"] }) {
  const upTo = (seconds: number | null): string => (seconds === null ? "longer" : `≤ ${ago(seconds * 1000)}`);
  const { buckets, p50_s, p90_s } = waits;
  return (
    <>
      <Bars
        title="How long requests waited"
        about={
          p50_s === null || p90_s === null
            ? "Permission requests by the time until they were closed"
            : `Half within ${duration(p50_s * 1000)}, 90 % within ${duration(p90_s * 1000)}`
        }
        head="Waited"
        labels={buckets.map(({ up_to_s }) => upTo(up_to_s))}
        kind="count"
        format={(value) => String(Math.round(value))}
        series={[
          { name: "By a person", values: buckets.map(({ person }) => person) },
          { name: "By a rule", values: buckets.map(({ rule }) => rule) },
          { name: "Expired", values: buckets.map(({ expired }) => expired) },
        ]}
      />
      <div class="panel table-panel">
        <h2>Waits by tool</h2>
        {waits.by_tool.length === 0 ? (
          <p class="muted figure-empty">Nothing in this period.</p>
        ) : (
          <div class="table-scroll" tabIndex={0} role="region" aria-label="Waits by tool">
            <table>
              <thead>
                <tr>
                  <th scope="col">Tool</th>
                  <th scope="col" class="number">
                    Requests
                  </th>
                  <th scope="col" class="number">
                    Half within
                  </th>
                  <th scope="col" class="number">
                    90 % within
                  </th>
                </tr>
              </thead>
              <tbody>
                {waits.by_tool.slice(0, 12).map((tool) => (
                  <tr key={tool.tool}>
                    <td>
                      <Shown text={tool.tool} />
                    </td>
                    <td class="number">{tool.count}</td>
                    <td class="number">{tool.p50_s === null ? "—" : duration(tool.p50_s * 1000)}</td>
                    <td class="number">{tool.p90_s === null ? "—" : duration(tool.p90_s * 1000)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </div>
    </>
  );
}

function FindingsByDay({ findings, days }: { findings: Overview["findings"]; days: string[] }) {
  const kinds = [...groupBy(findings, ({ kind }) => kind)]
    .map(([kind, of]) => ({ kind, of, sum: of.reduce((sum, { count }) => sum + count, 0) }))
    .sort((left, right) => right.sum - left.sum);
  const series = kinds.slice(0, 7).map(({ kind, of }): Series => {
    const byDay = new Map(of.map(({ day, count }) => [day, count]));
    return {
      name: kind in FINDING_KINDS ? FINDING_KINDS[kind as keyof typeof FINDING_KINDS].title : spaced(kind),
      values: days.map((day) => byDay.get(day) ?? 0),
    };
  });
  const rest = kinds.slice(7);
  if (rest.length > 0) {
    series.push({ name: "Others", values: days.map((day) => rest.reduce((sum, { of }) => sum + (of.find((entry) => entry.day === day)?.count ?? 0), 0)) });
  }
  return <Bars title="Findings by kind" labels={days} axis={monthDay} series={series} kind="count" format={(value) => String(Math.round(value))} />;
}

type Measure = "tokens" | "cost";
type By = "agent" | "model" | "project" | "session";
/** Number of series per day, limited by the number of colours. */
const SERIES = 7;
type Part = { name: string; query: { agent: Provider[]; model?: string } | { project: string } };

function Costs({ days }: { days: number }) {
  const since = beginning(days);
  const measure = useSignal<Measure>("tokens");
  const by = useSignal<By>("agent");
  const { state, again } = useLoad(
    async (abort) => {
      const query = { since, tz: zone() };
      const [agents, models, projects, sessions] = await Promise.all(
        (["agent", "model", "project", "session"] as By[]).map((by) => call("GET /api/v1/usage", { query: { ...query, by, limit: 20 }, signal: abort })),
      );
      return { agent: agents, model: models, project: projects, session: sessions } as Record<By, UsageReport>;
    },
    [days, restarts.value],
  );
  // Sessions are shown as rows; the days are split by agent, because seven of many sessions would say little.
  const dimension = by.value === "session" ? "agent" : by.value;
  const reports = state.value.value;
  const daily = useLoad(
    async (abort) => {
      const parts = (reports?.[dimension].usage ?? [])
        .slice(0, SERIES)
        .flatMap((entry): Part[] =>
          dimension === "project"
            ? entry.project == null || entry.project === ""
              ? []
              : [{ name: visible(basename(entry.project)), query: { project: entry.project } }]
            : dimension === "model"
              ? entry.model == null || entry.provider == null
                ? []
                : [{ name: `${visible(entry.model)} (${AGENTS[entry.provider]})`, query: { agent: [entry.provider], model: entry.model } }]
              : entry.provider == null
                ? []
                : [{ name: AGENTS[entry.provider], query: { agent: [entry.provider] } }],
        );
      const days = await Promise.all(
        parts.map(async ({ name, query }) => {
          const { usage } = await call("GET /api/v1/usage", { query: { since, tz: zone(), by: "day", ...query }, signal: abort });
          return { name, days: new Map(usage.map((entry) => [entry.day ?? "", entry])) };
        }),
      );
      return reports === null ? null : { dimension, days };
    },
    [dimension, reports],
  ).state.value;
  const { value, cause } = state.value;
  if (cause !== null && value === null) return <Failed cause={cause} retry={again} />;
  if (daily.cause !== null && daily.value === null) return <Failed cause={daily.cause} />;
  if (value === null || daily.value === null) return <Loading lines={5} />;
  const total = value.agent.total;
  if (total.calls === 0) return <Empty icon="overview" title="No tokens were used in this period" />;
  const labels = calendar(since);
  const series = daily.value.days.map(
    ({ name, days }): Series => ({
      name,
      values: labels.map((day) => {
        const entry = days.get(day);
        if (entry === undefined) return 0;
        return measure.value === "cost" ? entry.cost_usd : tokens(entry);
      }),
    }),
  );
  const { quotas, unpriced_models } = value.agent;
  return (
    <>
      <div class="page-head section-head">
        <h2 class="section-title">Tokens and cost</h2>
        <div class="segmented" role="group" aria-label="Measure">
          {(["tokens", "cost"] as Measure[]).map((name) => (
            <button key={name} type="button" aria-pressed={measure.value === name} onClick={() => (measure.value = name)}>
              {name === "tokens" ? "Tokens" : "Cost"}
            </button>
          ))}
        </div>
      </div>
      <div class="figures-grid">
        <Bars
          title={`${measure.value === "tokens" ? "Tokens" : "Cost"} per day by ${daily.value.dimension}`}
          about={
            <>
              {short(tokens(total))} tokens, {dollars(total.cost_usd)}
              {total.unpriced_calls > 0 && `, without ${total.unpriced_calls} calls that have no price`}
            </>
          }
          labels={labels}
          axis={monthDay}
          series={series}
          format={measure.value === "tokens" ? short : (amount) => dollars(amount)}
        />
        <div class="panel table-panel">
          <div class="segmented" role="group" aria-label="Rows">
            {(["agent", "model", "project", "session"] as By[]).map((name) => (
              <button key={name} type="button" aria-pressed={by.value === name} onClick={() => (by.value = name)}>
                {name}
              </button>
            ))}
          </div>
          <UsageTable rows={value[by.value].usage} by={by.value} />
          {unpriced_models.length > 0 && <p class="muted small">Without a price: {unpriced_models.map((model) => visible(model)).join(", ")}</p>}
        </div>
        {quotas.length > 0 && (
          <div class="panel table-panel quotas-panel">
            <h2>Quotas</h2>
            <ul class="quotas">
              {quotas.map((quota) => (
                <QuotaLine key={`${quota.provider} ${quota.name}`} quota={quota} />
              ))}
            </ul>
          </div>
        )}
      </div>
    </>
  );
}

/** A quota. After its reset, earlier usage no longer counts. */
function QuotaLine({ quota }: { quota: QuotaView }) {
  const reset = quota.resets_at == null ? null : Date.parse(quota.resets_at);
  const isPast = reset !== null && reset <= now.value;
  return (
    <li class={isPast ? "quota-past" : ""}>
      <span>
        {AGENTS[quota.provider]}, <Shown text={quota.name} />
      </span>
      {!isPast && <meter min={0} max={100} high={85} value={quota.used_percent} aria-label={`${AGENTS[quota.provider]} ${visible(quota.name)}`} />}
      <span class="muted small">
        {isPast ? (
          `Reset ${moment(reset)}; not reported since. Before: ${Math.round(quota.used_percent)} % used`
        ) : (
          <>
            {Math.round(quota.used_percent)} % used
            {reset !== null && `, resets ${moment(reset)}`}
            {quota.used_up_at != null && `, used up ${moment(quota.used_up_at)} at this pace`}
          </>
        )}
      </span>
    </li>
  );
}

type Counted = Pick<UsageRow, "input_tokens" | "output_tokens" | "cache_read_tokens" | "cache_write_tokens">;
const tokens = (of: Counted): number => of.input_tokens + of.output_tokens + of.cache_read_tokens + of.cache_write_tokens;

function UsageTable({ rows, by }: { rows: UsageRow[]; by: By }) {
  const name = (entry: UsageRow) => {
    if (by === "agent") return entry.provider == null ? "unknown" : AGENTS[entry.provider];
    if (by === "model") return visible(entry.model ?? "unknown");
    if (by === "project") return <span title={visible(entry.project ?? "")}>{visible(basename(entry.project ?? "no directory"))}</span>;
    const id = entry.session_id ?? "";
    return <a href={`/s/${id}`}>{entry.title == null ? <Title of={row(id)?.session.value} id={id} /> : <Shown text={entry.title} />}</a>;
  };
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={`Usage by ${by}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">{by.charAt(0).toUpperCase() + by.slice(1)}</th>
            <th scope="col" class="number">
              Input
            </th>
            <th scope="col" class="number">
              Output
            </th>
            <th scope="col" class="number">
              From cache
            </th>
            <th scope="col" class="number">
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((entry, index) => (
            <tr key={index}>
              <td class="usage-name">{name(entry)}</td>
              <td class="number">{short(entry.input_tokens + entry.cache_write_tokens)}</td>
              <td class="number">{short(entry.output_tokens)}</td>
              <td class="number">{entry.cache_hit_rate == null ? "—" : `${Math.round(entry.cache_hit_rate * 100)} %`}</td>
              <td class="number nowrap">{dollars(entry.cost_usd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
