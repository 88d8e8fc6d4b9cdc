import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Run(_: { thread: string; run: string }) {
  return (
    <Page title="Run">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
