//! Memory plans of systems that nobody thought of.

mod common;

use std::collections::BTreeSet;

use abi::image::{Access, HEADER_SIZE, Image, Platform, Reader};
use manifest::{At, ImageKind, MapEntry, MemoryAccess, Plan, Pool, Sizes, Span, System, Task, Use, Window, plan};
use proptest::prelude::*;

const PAGE: u64 = 4096;
const BLOCK: u64 = 2 << 20;

/// What is random about a task.
#[derive(Clone, Debug)]
struct Shape {
    sizes: Sizes,
    stack: u64,
    memory: Vec<(u64, bool)>,
}

fn sizes() -> impl Strategy<Value = Sizes> {
    (0..400_000u64, 0..90_000u64, 0..9000u64, 0..300_000u64).prop_map(|(text, rodata, data, bss)| Sizes {
        text,
        rodata,
        data,
        bss,
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    let memory = prop::collection::vec((1..40u64, any::<bool>()), 0..4);
    (sizes(), 1..20u64, memory).prop_map(|(sizes, stack, memory)| Shape { sizes, stack: stack * PAGE, memory })
}

/// A system of tasks of these shapes, with windows and pools between them.
fn system(
    shapes: &[Shape],
    windows: &BTreeSet<(usize, usize)>,
    pools: &[(u16, usize)],
    ram: u64,
    image: u64,
) -> System {
    let mut system = common::system(ImageKind::Normal);
    let at = system.kernel.stack.at.clone();
    let size = |value| At { value, at: at.clone() };
    let template = system.tasks[0].clone();
    let task = |(index, shape): (usize, &Shape)| Task {
        name: At { value: format!("t{index}"), at: at.clone() },
        stack: size(shape.stack),
        notifies: Vec::new(),
        memory: (shape.memory.iter().enumerate())
            .map(|(index, &(pages, cached))| manifest::Memory {
                name: format!("m{index}"),
                size: size(pages * PAGE),
                access: if cached { MemoryAccess::Cached } else { MemoryAccess::Uncached },
            })
            .collect(),
        ..template.clone()
    };
    system.tasks = shapes.iter().enumerate().map(task).collect();
    system.interrupts.clear();
    let count = shapes.len();
    let pairs = windows.iter().map(|&(one, other)| (one % count, other % count)).filter(|(one, other)| one < other);
    let pairs: BTreeSet<(usize, usize)> = pairs.collect();
    system.windows = pairs
        .into_iter()
        .enumerate()
        .map(|(index, (owner, peer))| Window { owner, peer, size: size((index as u64 % 5 + 1) * PAGE) })
        .collect();
    let pool = |&(frames, owner): &(u16, usize)| Pool {
        owner: owner % count,
        returned: 1,
        frames: At { value: frames, at: at.clone() },
        holders: if count > 1 { vec![((owner + 1) % count, frames)] } else { Vec::new() },
        quiesce: Vec::new(),
    };
    system.pools = pools.iter().map(pool).collect();
    system.board.ram.size.value = ram * BLOCK;
    system.board.image.value = image * PAGE;
    system
}

fn overlap(one: Span, other: Span) -> bool {
    one.base < other.end() && other.base < one.end()
}

/// Everything that every plan promises.
fn check(system: &System, plan: &Plan, kernel: Sizes, sizes: &[Sizes]) {
    assert_eq!(plan.map.overlap(), None);
    let (start, end) = (system.board.image.value, system.board.ram.base + system.board.ram.size.value);
    let entries = &plan.map.entries;
    for entry in entries {
        let Span { base, size } = entry.span;
        assert!(base % PAGE == 0 && size % PAGE == 0 && size > 0, "{entry:?}");
        assert!(entry.used <= size, "{entry:?}");
        let in_ram = entry.purpose == Use::Registers || (base >= start && entry.span.end() <= end);
        assert!(in_ram, "{entry:?} is not in {start:#x}..{end:#x}");
    }
    // The list is the whole: no pair of its entries overlaps, and everything placed is in it.
    for (index, entry) in entries.iter().enumerate() {
        assert!(entries[index + 1..].iter().all(|other| !overlap(entry.span, other.span)), "{entry:?}");
    }
    let listed = |span: Span| span.size == 0 || entries.iter().any(|entry| entry.span == span);
    let kernel_parts = [plan.kernel.text, plan.kernel.rodata, plan.kernel.data, plan.kernel.stack, plan.kernel.table];
    assert!(kernel_parts.into_iter().chain([plan.page_tables]).all(listed));
    assert_eq!(plan.kernel.text.base, start);
    assert!(plan.kernel.text.size >= kernel.text && plan.kernel.data.size >= kernel.data + kernel.bss);
    for (place, sizes) in plan.tasks.iter().zip(sizes) {
        let parts = [place.text, place.rodata, place.data, place.stack, place.config];
        assert!(parts.into_iter().chain(place.memory.iter().copied()).all(listed));
        assert!(place.text.size >= sizes.text && place.data.size >= sizes.data + sizes.bss);
        // The load image of `.data` is behind the constants.
        assert!(place.rodata.size >= sizes.rodata.next_multiple_of(8) + sizes.data);
        assert_eq!(place.guard + PAGE, place.stack.base, "the guard page is right under the stack");
    }
    check_pools(system, plan, entries);
}

/// Pools are side by side in blocks of their own.
fn check_pools(system: &System, plan: &Plan, entries: &[MapEntry]) {
    let Some(first) = plan.pools.first() else { return };
    assert_eq!(first.base % BLOCK, 0);
    let mut next = first.base;
    for (pool, span) in system.pools.iter().zip(&plan.pools) {
        assert_eq!(*span, Span { base: next, size: u64::from(pool.frames.value) * PAGE });
        next = span.end();
    }
    let blocks = first.base / BLOCK..=(next - 1) / BLOCK;
    let others = entries.iter().filter(|entry| entry.purpose != Use::Pool);
    for entry in others {
        assert!(!blocks.contains(&(entry.span.base / BLOCK)) && !blocks.contains(&((entry.span.end() - 1) / BLOCK)));
    }
}

/// What the kernel's table promises of the tasks' regions.
fn check_image(system: &System, plan: &Plan, image: &Image) {
    let bytes = manifest::encode_image(image);
    assert!(bytes.len() as u64 <= plan.kernel.table.size, "{} bytes of table", bytes.len());
    let span = |region: &abi::image::Region| Span { base: region.base, size: region.size };
    for (index, task) in image.tasks.iter().enumerate() {
        assert_eq!(task.stack_top % 16, 0);
        let guard = Span { base: task.guard, size: PAGE };
        for (other, regions) in image.tasks.iter().map(|task| &task.regions).enumerate() {
            assert!(
                regions.iter().all(|region| !overlap(span(region), guard)),
                "the guard of {index} is mapped for {other}"
            );
        }
        assert_eq!(span(&task.regions[0]), plan.tasks[index].stack);
        for region in &task.regions {
            let writable = region.access.contains(Access::WRITE);
            assert!(!(writable && region.access.contains(Access::EXECUTE)));
            let shared = plan.windows.contains(&span(region));
            let mut others = image.tasks.iter().enumerate().filter(|(other, _)| *other != index);
            let foreign =
                others.any(|(_, other)| other.regions.iter().any(|theirs| overlap(span(theirs), span(region))));
            assert_eq!(foreign, shared, "{region:?} of {index}");
            let forbidden = plan.pools.iter().copied().chain([plan.page_tables, plan.kernel.table, plan.kernel.data]);
            assert!(forbidden.into_iter().all(|kernel| !overlap(kernel, span(region))), "{region:?} of {index}");
        }
        let page = manifest::encode_config(&plan.task_config(system, index));
        assert!(page.len() as u64 <= PAGE);
    }
    read_back(image, &bytes);
}

/// The kernel reads what was written.
fn read_back(image: &Image, bytes: &[u8]) {
    let mut reader = Reader::new(bytes).expect("a good header");
    assert_eq!(reader.take::<Platform>().as_ref(), Some(&image.platform));
    let mut tasks = Vec::new();
    reader
        .list(|task: abi::image::Task| {
            tasks.push(task);
            Some(())
        })
        .expect("all tasks");
    assert_eq!(tasks[..], image.tasks[..]);
    reader.list(|_: abi::image::Interrupt| Some(())).expect("all interrupts");
    let mut pools = Vec::new();
    reader
        .list(|pool: abi::image::Pool| {
            pools.push(pool);
            Some(())
        })
        .expect("all pools");
    assert_eq!(pools[..], image.pools[..]);
    assert_eq!(reader.take::<(u8, u32)>(), Some(image.supervisor));
    assert!(bytes.len() > HEADER_SIZE && Reader::new(&bytes[..bytes.len() - 1]).is_none());
}

/// The bytes from the image's start to the end of what does not fit.
fn needed(problems: &manifest::Diagnostics) -> u64 {
    let text = common::render(problems);
    let (before, _) = text.split_once(" bytes are needed from").unwrap_or_else(|| panic!("{text}"));
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn plans_keep_everybody_apart(
        kernel in sizes(),
        shapes in prop::collection::vec(shape(), 1..abi::MAX_TASKS),
        windows in prop::collection::btree_set((0..32usize, 0..32usize), 0..6),
        pools in prop::collection::vec((1..256u16, 0..32usize), 0..4),
        ram in 2..64u64,
        image in 0..512u64,
    ) {
        let system = system(&shapes, &windows, &pools, ram, image);
        let sizes: Vec<Sizes> = shapes.iter().map(|shape| shape.sizes).collect();
        let available = system.board.ram.size.value - system.board.image.value;
        match plan(&system, kernel, &sizes) {
            Ok(plan) => {
                check(&system, &plan, kernel, &sizes);
                let entries: Vec<u64> = plan.tasks.iter().map(|place| place.text.base).collect();
                check_image(&system, &plan, &plan.image(&system, &entries));
                prop_assert_eq!(&plan, &manifest::plan(&system, kernel, &sizes).expect("the same again"));
            }
            Err(problems) => {
                let mut larger = system.clone();
                let need = needed(&problems);
                prop_assert!(need > available);
                // With RAM enough for what is said to be needed, it fits.
                larger.board.ram.size.value = (system.board.image.value + need).next_multiple_of(BLOCK);
                prop_assert!(plan(&larger, kernel, &sizes).is_ok());
            }
        }
    }

    #[test]
    fn absurd_sizes_are_refused(text in any::<u64>(), rodata in any::<u64>(), data in any::<u64>(), bss in any::<u64>()) {
        let system = common::system(ImageKind::Normal);
        let sizes = Sizes { text: text | 1 << 30, rodata, data, bss };
        prop_assert!(plan(&system, sizes, &vec![sizes; system.tasks.len()]).is_err());
    }
}

#[test]
fn the_map_names_everything() {
    let system = common::system(ImageKind::Normal);
    let plan = plan(&system, common::SIZES, &vec![common::SIZES; system.tasks.len()]).expect("fits");
    let find =
        |name: &str| plan.map.entries.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(find("net.stack").span, plan.tasks[3].stack);
    assert_eq!(find("mac.pool").span.size, 64 * PAGE);
    assert_eq!(find("mac.ring").purpose, Use::Dma);
    assert_eq!(find("net.client").span, plan.windows[0]);
    assert_eq!(find("mac.mac (mac0)").span.base, 0xff0b_0000);
    assert_eq!(find("kernel.table").span, plan.kernel.table);
    assert_eq!((find("client.data").used, find("client.data").span.size), (9100, 12288));
}

#[test]
fn tasks_are_told_what_they_have() {
    let system = common::system(ImageKind::Test);
    let plan = plan(&system, common::SIZES, &vec![common::SIZES; system.tasks.len()]).expect("fits");
    let task = |name: &str| system.tasks.iter().position(|task| task.name.value == name).expect("a task");
    let page = manifest::encode_config(&plan.task_config(&system, task("mac")));
    let view = abi::config::View::new(&page).expect("a good header");
    let found = |wanted: &str| view.find(|item| (format!("{item:?}") == wanted).then_some(()));
    for item in [
        r#"Name("mac")"#.to_owned(),
        format!(r#"Notify("rx", {}, 1)"#, task("net")),
        format!(r#"Notify("rx", {}, 1)"#, task("suite")),
        r#"Notification("frames-back", 2)"#.to_owned(),
        format!(r#"Peripheral("mac", {}, 4096)"#, 0xff0b_0000u64),
        format!(r#"Memory("ring", {}, 16384)"#, plan.tasks[task("mac")].memory[0].base),
        format!(r#"Pool("mac", {}, 0, 64)"#, plan.pools[0].base),
        r#"Value("phy", Integer(3))"#.to_owned(),
        r#"Value("strategy", Text("lease"))"#.to_owned(),
        r#"Value("mac", Bytes(ByteList([2, 0, 0, 0, 0, 1])))"#.to_owned(),
    ] {
        assert!(found(&item).is_some(), "no {item}");
    }
    let image = plan.image(&system, &vec![0; system.tasks.len()]);
    let mac = &image.tasks[task("mac")];
    let access: Vec<Access> = mac.regions.iter().map(|region| region.access).collect();
    let data = Access::READ | Access::WRITE;
    let text = Access::READ | Access::EXECUTE;
    assert_eq!(access, [data, data, Access::READ, text, Access::READ, data | Access::UNCACHED, data | Access::DEVICE]);
    assert_eq!(image.pools[0].quiesce.len(), 2);
    assert_eq!(image.supervisor, (0, 1));
    assert_eq!(image.tasks[task("suite")].slots, 1 << task("net") | 1 << task("client"));
    // Only tasks that may see the others know their names.
    assert_eq!(plan.task_config(&system, 0).tasks.len(), system.tasks.len());
    assert!(plan.task_config(&system, task("mac")).tasks.is_empty());
}
