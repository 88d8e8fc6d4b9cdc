import { Empty, Page } from "../../components/page";

/** The screen. */
export default function System() {
  return (
    <Page title="System">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
