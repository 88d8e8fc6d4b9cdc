import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Schedule(_: { schedule: string }) {
  return (
    <Page title="Schedule">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
