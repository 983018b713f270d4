//! Compiles the interface.

fn main() {
    idol::generate("bench.idol");
}
