fn main(){ println!("{}", wasmprinter::print_file(std::env::args().nth(1).unwrap()).unwrap()); }
