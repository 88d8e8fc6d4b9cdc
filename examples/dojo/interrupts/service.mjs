// The bank that the tool transfer_money calls: POST {to, amount}. It stands in for a real one.
import { json } from "node:stream/consumers";

const receipts = new Map(); // by Idempotency-Key, so that a repeated call transfers nothing

export default async function serve(request, response) {
  const key = request.headers["idempotency-key"];
  const { to, amount } = await json(request);
  if (!receipts.has(key)) receipts.set(key, `Transfer ${receipts.size + 1}: ${amount} to ${to}.`);
  response.setHeader("Content-Type", "text/plain");
  response.end(receipts.get(key));
}
