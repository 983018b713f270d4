//! Compiles the interface.

fn main() {
    idol::generate("supervisor.idol");
}
