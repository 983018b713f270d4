//! Compiles the interface.

fn main() {
    idol::generate("mac.idol");
}
