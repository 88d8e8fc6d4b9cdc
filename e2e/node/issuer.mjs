// Serves an OpenID provider by oidc-provider, installed in the working directory, on a free port until stdin ends.
// Prints {"url"}. Any name can sign in. Tokens expire after seconds, so that tests see how they are renewed.
//
//   argument: the origin of Perdure, the only client: its ID is console, its secret secret-of-the-console
//   PUT /accounts {name, roles}  sets the roles of a user, in the claim roles
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { once } from "node:events";
import { json, text } from "node:stream/consumers";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const { Provider } = await import(pathToFileURL(require.resolve("oidc-provider")).href);

const [origin] = process.argv.slice(2);
const roles = new Map(); // by name of the user
const server = createServer().listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "console",
      client_secret: "secret-of-the-console",
      grant_types: ["authorization_code", "refresh_token"],
      redirect_uris: [origin + "/auth/callback"],
      post_logout_redirect_uris: [origin + "/"],
      backchannel_logout_uri: origin + "/auth/backchannel-logout",
      backchannel_logout_session_required: true,
    },
  ],
  claims: { openid: ["sub", "roles"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["key-of-the-tests"] },
  features: {
    devInteractions: { enabled: false },
    backchannelLogout: { enabled: true },
    rpInitiatedLogout: {
      // The pages of the library load a font.
      postLogoutSuccessSource: (ctx) => void (ctx.body = "<!doctype html><title>Signed out</title>"),
      logoutSource: (ctx, form) =>
        void (ctx.body = `<!doctype html><title>Sign out</title>${form}<button form="op.logoutForm" value="yes" name="logout">Sign out</button>`),
    },
  },
  fetch: (url, { dispatcher, ...options }) => fetch(url, options), // the dispatcher refuses loopback addresses
  findAccount: (ctx, name) => ({ accountId: name, claims: () => ({ sub: name, roles: roles.get(name) ?? [] }) }),
  interactions: { url: (ctx, { uid }) => `/interaction/${uid}` },
  issueRefreshToken: () => true,
  // Users need not consent.
  async loadExistingGrant(ctx) {
    const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
    grant.addOIDCScope("openid profile email");
    await grant.save();
    return grant;
  },
  pkce: { required: () => true },
  ttl: { AccessToken: 3, IdToken: 3, RefreshToken: 3600, Session: 3600, Interaction: 600, Grant: 3600 },
});

provider.on("backchannel.error", (ctx, error) => console.error("back-channel logout:", error));
provider.on("server_error", (ctx, error) => console.error(error));

const page = `<!doctype html><title>Sign in</title><form method="post"><input name="name"><button>Sign in</button></form>`;
const callback = provider.callback();
server.on("request", async (req, res) => {
  if (req.method === "PUT" && req.url === "/accounts") {
    const account = await json(req);
    roles.set(account.name, account.roles);
    return res.end();
  }
  if (req.url === "/favicon.ico") return res.writeHead(204).end(); // browsers report a 404
  if (!req.url.startsWith("/interaction/")) return callback(req, res);
  if (req.method === "GET") return res.setHeader("Content-Type", "text/html").end(page);
  const accountId = new URLSearchParams(await text(req)).get("name");
  await provider.interactionFinished(req, res, { login: { accountId } });
});

process.stdout.write(JSON.stringify({ url: issuer }) + "\n");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
