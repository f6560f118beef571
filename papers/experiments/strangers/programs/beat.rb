# A worker with a tick of 20 ms, and ten threads that make strings ten times a second.
seconds = ENV['SECONDS_TO_RUN'].to_f
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
10.times { Thread.new { loop { (1..300).map(&:to_s).join; sleep 0.1 } } }
times = []
due = began = now.call
while now.call < began + seconds
  due += 0.02
  sleep [due - now.call, 0].max
  times << now.call * 1000
  (1..20_000).sum { |i| i * i }
end
puts times
