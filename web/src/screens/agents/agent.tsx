import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Agent(_: { agent: string }) {
  return (
    <Page title="Agent">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
