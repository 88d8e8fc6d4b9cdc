import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Chat(_: { agent?: string }) {
  return (
    <Page title="Chat">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
