import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Inbox(_: { thread?: string; approval?: string }) {
  return (
    <Page title="Inbox">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
