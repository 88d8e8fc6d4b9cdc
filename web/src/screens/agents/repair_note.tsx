import { useLocation } from "wouter";
import { Button } from "../../components/button";
import { ForkIcon } from "../../components/icons";
import { useShortcuts } from "../../components/shortcuts";
import styles from "./definition.module.css";

/** Says that the definition is edited to repair a run, and leads back to the fork of it. */
export function RepairNote({ run, isChanged }: { run: string; isChanged: boolean }) {
  const [, navigate] = useLocation();
  const fork = () => navigate(`${run}?fork=before-failure`);
  useShortcuts("Repair", [{ keys: "f", label: "Fork the run that you repair", run: fork }]);
  return (
    <div className={styles.outdated} role="note">
      <span>You repair a run. Change the definition, and fork the run before its failure: no need to publish.</span>
      <Button onPress={fork}><ForkIcon />{isChanged ? "Fork with this draft" : "Back to the run"}</Button>
    </div>
  );
}
