//! Compiles the interface.

fn main() {
    idol::generate("net.idol");
}
