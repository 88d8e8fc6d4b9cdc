import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Usage() {
  return (
    <Page title="Usage">
      <Empty title="Nothing here yet" />
    </Page>
  );
}
