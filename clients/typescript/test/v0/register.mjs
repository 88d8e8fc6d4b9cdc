// Replaces @ag-ui/client by its version before 1.0: node --import ./test/v0/register.mjs
import { register } from "node:module";

register("./resolve.mjs", import.meta.url);
process.env.AG_UI_GENERATION = "0";
