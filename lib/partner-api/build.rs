//! Compiles the interface.

fn main() {
    idol::generate("partner.idol");
}
