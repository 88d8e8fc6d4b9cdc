export const resolve = (specifier, context, next) =>
  next(specifier === "@ag-ui/client" ? "ag-ui-client-v0" : specifier, context);
