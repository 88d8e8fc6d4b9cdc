// The weather service that the tool get_weather calls: GET ?city=Lisbon. It stands in for a real one.

const weather = {
  lisbon: { celsius: 24, conditions: "sunny", wind: 12 },
  bergen: { celsius: 9, conditions: "rainy", wind: 31 },
};

export default function serve(request, response) {
  const city = new URL(request.url, "http://localhost").searchParams.get("city") ?? "";
  const current = weather[city.toLowerCase()] ?? { celsius: 18, conditions: "cloudy", wind: 8 };
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify({ city, ...current }));
}
