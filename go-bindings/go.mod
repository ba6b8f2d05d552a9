module kelp/go-bindings

go 1.26
