//! Compiles the interface.

fn main() {
    idol::generate("serial.idol");
}
