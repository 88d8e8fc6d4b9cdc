import type { UsageItem } from "@perdure/client";
import { Chart } from "../../components/chart";
import { durationText } from "../../components/time";
import { amountText, countText } from "./numbers";
import { costOf, daysOf, meanDuration, succeeded, successRate } from "./queries";
import styles from "./usage.module.css";

/** Properties of UsageCharts. */
export interface UsageChartsProps {
  /** Usage by day. Several items of a day are added. */
  items: readonly UsageItem[];
  from: string;
  to: string;
}

/** Runs, success, latency, tokens and cost over the days of a period. */
export function UsageCharts({ items, from, to }: UsageChartsProps) {
  const days = daysOf({ from, to });
  const ofDay = days.map((day) => items.filter((item) => item.day === day));
  const add = (value: (item: UsageItem) => number) => ofDay.map((list) => list.reduce((total, item) => total + value(item), 0));
  const total = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  const runs = add((item) => item.runs);
  const interrupted = total(add((item) => item.interrupted));
  const success = successRate(items);
  const tokens = { input: add((item) => item.inputTokens), output: add((item) => item.outputTokens) };
  const costs = add(costOf);
  const currency = items.find(({ cost }) => cost?.currency !== undefined)?.cost?.currency;
  const labels = days.map((day) => new Date(`${day}T12:00:00`).toLocaleDateString(undefined, { month: "short", day: "numeric" }));
  return (
    <div className={styles.charts}>
      <Chart
        title="Runs" kind="bars" labels={labels} summary={countText(total(runs))} format={countText}
        note={interrupted > 0 ? `Waited for a decision ${countText(interrupted)} ${interrupted === 1 ? "time" : "times"}` : undefined}
        series={[
          { label: "succeeded", color: "blue", values: add(succeeded) },
          { label: "failed", color: "red", values: add((item) => item.failed) },
          { label: "cancelled", color: "gray", values: add((item) => item.cancelled) },
        ]}
      />
      <Chart
        title="Success" kind="line" labels={labels} most={1} format={percentText}
        summary={success === null ? "–" : percentText(success)} series={[{ label: "success", color: "green", values: ofDay.map(successRate) }]}
      />
      <Chart title="Mean duration" kind="line" labels={labels} summary={durationText(meanDuration(items) ?? 0)} format={durationText} series={[{ label: "mean", color: "blue", values: ofDay.map(meanDuration) }]} />
      <Chart
        title="Tokens" kind="bars" labels={labels} summary={countText(total(tokens.input) + total(tokens.output))} format={countText}
        series={[{ label: "input", color: "blue", values: tokens.input }, { label: "output", color: "violet", values: tokens.output }]}
      />
      {total(costs) > 0 && <Chart title={currency === undefined ? "Cost" : `Cost in ${currency}`} kind="bars" labels={labels} summary={amountText(total(costs))} format={amountText} series={[{ label: "cost", color: "green", values: costs }]} />}
    </div>
  );
}

const percentText = (value: number) => `${(value * 100).toFixed(Number.isInteger(value * 100) ? 0 : 1)} %`;
