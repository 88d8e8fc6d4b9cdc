import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Thread(_: { thread: string }) {
  return (
    <Page title="Thread">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
