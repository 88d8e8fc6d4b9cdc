import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Schedules() {
  return (
    <Page title="Schedules">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
