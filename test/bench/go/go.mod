module boxwright.dev/bench-client

go 1.25.0
