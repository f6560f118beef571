%% A switch: a tick of 10 ms, and a hundred processes that compute a little ten times a second.
-module(beat).
-export([main/0]).

main() ->
    {Seconds, _} = string:to_float(os:getenv("SECONDS_TO_RUN") ++ ".0"),
    [spawn(fun Loop() -> lists:sum(lists:seq(1, 2000)), timer:sleep(100), Loop() end) || _ <- lists:seq(1, 100)],
    Began = now_ms(),
    [io:format("~p~n", [T]) || T <- beat(Began, Began + Seconds * 1000, [])],
    halt().

beat(Due, End, Times) when Due > End -> Times;
beat(Due, End, Times) ->
    erlang:send_after(round(Due), self(), tick, [{abs, true}]),
    receive tick -> ok end,
    Now = now_ms(),
    lists:sum(lists:seq(1, 30000)),
    beat(max(Due, Now - 10) + 10, End, [Now | Times]).

now_ms() -> erlang:monotonic_time(microsecond) / 1000.
