-- Sends the bodies of a file, a line each, one after the other; prints what came of them as one line of JSON.
-- wrk --threads 1 .. --script wrk.lua URL -- PATH BODIES

function init(args)
  requests, last = {}, 0
  local headers = { ["Content-Type"] = "application/json" }
  for line in io.lines(args[2]) do
    requests[#requests + 1] = wrk.format("POST", args[1], headers, line)
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format(
    '\nRESULT {"requests": %d, "seconds": %f, "failed": %d, "p50": %f, "p90": %f, "p99": %f}\n',
    summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(90) / 1e3, latency:percentile(99) / 1e3))
end
